package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/examples/sidecarset/api/v1alpha1"
	"github.com/example/nginx-operator/examples/sidecarset/sidecar"
)

// Whatever goes wrong, the Pod is created, and its creator is warned. Fields that the Go type does not know stay.
func TestNoPodIsRefused(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	set := &v1alpha1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "set"}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "nginx"}}
	set.Spec.Containers = []corev1.Container{{Name: "sidecar1"}}
	sidecar.Admit(set)
	broken := false
	handler := &Pods{Namespace: "operators", Reader: fake.NewClientBuilder().WithScheme(scheme).WithObjects(set).WithInterceptorFuncs(
		interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if broken {
				return errors.New("no cache")
			}
			return c.List(ctx, list, opts...)
		}}).Build()}
	const pod = `{"metadata":{"name":"p","labels":{"app":"nginx"}},"spec":{"newer":1,"containers":[{"name":"NAME","image":"i"}]}}`
	for name, test := range map[string]struct {
		namespace, raw string
		broken         bool
		patched        bool
		warning        string
	}{
		"injected":  {"default", pod, false, true, ""},
		"excluded":  {"kube-system", pod, false, false, ""},
		"own":       {"operators", pod, false, false, ""},
		"no cache":  {"default", pod, true, false, "no sidecars are injected: failed to list SidecarSets: no cache"},
		"no Pod":    {"default", "{", false, false, "no sidecars are injected: failed to read the Pod: "},
		"same name": {"default", strings.Replace(pod, "NAME", "sidecar1", 1), false, false, `SidecarSet "set" is not injected: the Pod has`},
	} {
		broken = test.broken
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

// The generated configuration cannot stop a cluster: no Pod waits long for an answer or needs one.
func TestConfigurationCannotStopACluster(t *testing.T) {
	raw, err := os.ReadFile("../../config/webhook/manifests.yaml")
	if err != nil {
		t.Fatal(err)
	}
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{}
	if err := yaml.UnmarshalStrict([]byte(strings.Split(string(raw), "\n---\n")[0]), configuration); err != nil {
		t.Fatal(err)
	}
	found := false
	for _, hook := range configuration.Webhooks {
		if *hook.ClientConfig.Service.Path != pathPod {
			continue
		}
		found = true
		if *hook.FailurePolicy != admissionregistrationv1.Ignore || *hook.TimeoutSeconds > 2 || len(hook.Rules) != 1 ||
			len(hook.Rules[0].Operations) != 1 || hook.Rules[0].Operations[0] != admissionregistrationv1.Create {
			t.Errorf("failurePolicy %s, timeout %d s, rules %v", *hook.FailurePolicy, *hook.TimeoutSeconds, hook.Rules)
		}
	}
	if !found {
		t.Error("there is no webhook for Pods")
	}
}
