package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/example/nginx-operator/examples/sidecarset/api/v1alpha1"
	"github.com/example/nginx-operator/examples/sidecarset/sidecar"
)

// sets lists SidecarSets, or fails to.
type sets struct {
	client.Reader
	items []v1alpha1.SidecarSet
	err   error
}

func (s sets) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.(*v1alpha1.SidecarSetList).Items = s.items
	return s.err
}

// Whatever goes wrong, the Pod is created, and its creator is warned. Fields that the Go type does not know stay.
func TestNoPodIsRefused(t *testing.T) {
	set := v1alpha1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "set"}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "nginx"}}
	set.Spec.Containers = []corev1.Container{{Name: "sidecar1"}}
	sidecar.Admit(&set)
	const pod = `{"metadata":{"name":"p","labels":{"app":"nginx"}},"spec":{"newer":1,"containers":[{"name":"NAME","image":"i"}]}}`
	for name, test := range map[string]struct {
		namespace, raw string
		err            error
		patched        bool
		warning        string
	}{
		"injected":  {"default", pod, nil, true, ""},
		"excluded":  {"kube-system", pod, nil, false, ""},
		"own":       {"operators", pod, nil, false, ""},
		"no cache":  {"default", pod, errors.New("no cache"), false, "no sidecars are injected: failed to list SidecarSets: no cache"},
		"no Pod":    {"default", "{", nil, false, "no sidecars are injected: failed to read the Pod: "},
		"same name": {"default", strings.Replace(pod, "NAME", "sidecar1", 1), nil, false, `SidecarSet "set" is not injected: the Pod has`},
	} {
		handler := &Pods{Namespace: "operators", Reader: sets{items: []v1alpha1.SidecarSet{set}, err: test.err}}
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
