package webhook

import (
	"encoding/json"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/example/nginx-operator/examples/sidecarset/api/v1alpha1"
	"github.com/example/nginx-operator/examples/sidecarset/sidecar"
)

// TestNoPodIsRefused checks that a Pod is created after any error, and that its creator gets a
// warning. Fields that are unknown to the Go type are preserved.
func TestNoPodIsRefused(t *testing.T) {
	set := v1alpha1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "set"}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "nginx"}}
	set.Spec.Containers = []corev1.Container{{Name: "sidecar1"}}
	sidecar.Admit(&set)
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(&set).Build()
	failing := fake.NewClientBuilder().WithScheme(runtime.NewScheme()).Build()
	const pod = `{"metadata":{"name":"p","labels":{"app":"nginx"}},"spec":{"newer":1,"containers":[{"name":"NAME","image":"i"}]}}`
	for name, test := range map[string]struct {
		namespace, raw string
		reader         client.Reader
		patched        bool
		warning        string
	}{
		"injected":  {"default", pod, reader, true, ""},
		"excluded":  {"kube-system", pod, reader, false, ""},
		"own":       {"operators", pod, reader, false, ""},
		"no cache":  {"default", pod, failing, false, "no sidecars are injected: failed to list SidecarSets: no kind is registered"},
		"no Pod":    {"default", "{", reader, false, "no sidecars are injected: failed to read the Pod: "},
		"same name": {"default", strings.Replace(pod, "NAME", "sidecar1", 1), reader, false, `SidecarSet "set" is not injected: the Pod has`},
	} {
		handler := &Pods{Namespace: "operators", Reader: test.reader}
		response := handler.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
			Namespace: test.namespace, Object: runtime.RawExtension{Raw: []byte(test.raw)},
		}})
		patch, err := json.Marshal(response.Patches)
		if err != nil || !response.Allowed || (len(response.Patches) > 0) != test.patched || strings.Contains(string(patch), "newer") ||
			!strings.HasPrefix(strings.Join(response.Warnings, "\n"), test.warning) || (len(response.Warnings) > 0) != (test.warning != "") {
			t.Errorf("%s: got %+v", name, response)
		}
	}
}
