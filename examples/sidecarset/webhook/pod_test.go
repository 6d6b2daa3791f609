package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/examples/sidecarset/api/v1alpha1"
	"github.com/example/nginx-operator/examples/test/sample"
)

// newInjector returns the webhook of an operator in the namespace "operators", with the sample SidecarSet.
func newInjector(t *testing.T, funcs interceptor.Funcs) *Injector {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	set := sample.Read[v1alpha1.SidecarSet](t, "../sample/sidecarset.yaml")
	return &Injector{
		Reader:    fake.NewClientBuilder().WithScheme(scheme).WithObjects(set).WithInterceptorFuncs(funcs).Build(),
		Namespace: "operators",
	}
}

func creation(t *testing.T, namespace string, raw []byte) admission.Request {
	t.Helper()
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Namespace: namespace, Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: raw},
	}}
}

func samplePod(t *testing.T) []byte {
	t.Helper()
	pod := sample.Read[map[string]any](t, "../sample/pod.yaml")
	raw, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// apply returns what a Pod is after the answer.
func apply(t *testing.T, raw []byte, response admission.Response) *corev1.Pod {
	t.Helper()
	if !response.Allowed {
		t.Fatalf("a Pod was refused: %v", response.Result)
	}
	encoded, err := json.Marshal(response.Patches)
	if err != nil {
		t.Fatal(err)
	}
	patch, err := jsonpatch.DecodePatch(encoded)
	if err != nil {
		t.Fatal(err)
	}
	if raw, err = patch.Apply(raw); err != nil {
		t.Fatalf("the patch does not fit the Pod that the client sent: %v", err)
	}
	pod := &corev1.Pod{}
	if err := json.Unmarshal(raw, pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

func TestPodGetsItsSidecar(t *testing.T) {
	injector := newInjector(t, interceptor.Funcs{})
	raw := samplePod(t)
	pod := apply(t, raw, injector.Handle(t.Context(), creation(t, "default", raw)))
	if len(pod.Spec.Containers) != 2 || pod.Spec.Containers[1].Name != "sidecar1" || len(pod.Spec.Volumes) != 1 {
		t.Errorf("got %+v", pod.Spec)
	}
	again, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	if response := injector.Handle(t.Context(), creation(t, "default", again)); !response.Allowed || len(response.Patches) != 0 {
		t.Errorf("asked again, it answers %+v", response)
	}
}

func TestPodsThatGetNone(t *testing.T) {
	injector := newInjector(t, interceptor.Funcs{})
	for _, namespace := range []string{"kube-system", "kube-public", "operators"} {
		if response := injector.Handle(t.Context(), creation(t, namespace, samplePod(t))); !response.Allowed || len(response.Patches) != 0 {
			t.Errorf("in %s it answers %+v", namespace, response)
		}
	}
}

// Whatever goes wrong, the Pod is created, and its creator is told.
func TestNoPodIsRefused(t *testing.T) {
	broken := newInjector(t, interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return errors.New("the cache is not there")
	}})
	taken := strings.Replace(string(samplePod(t)), `"name":"app"`, `"name":"sidecar1"`, 1)
	for name, test := range map[string]struct {
		injector *Injector
		raw      []byte
		want     string
	}{
		"no cache":  {broken, samplePod(t), "no sidecars are injected: failed to list SidecarSets: the cache is not there"},
		"no Pod":    {newInjector(t, interceptor.Funcs{}), []byte("{"), "no sidecars are injected: failed to read the Pod: "},
		"same name": {newInjector(t, interceptor.Funcs{}), []byte(taken), `SidecarSet "test-sidecarset" is not injected: the Pod has a container "sidecar1" already`},
	} {
		response := test.injector.Handle(t.Context(), creation(t, "default", test.raw))
		if !response.Allowed || len(response.Patches) != 0 || len(response.Warnings) != 1 || !strings.HasPrefix(response.Warnings[0], test.want) {
			t.Errorf("%s: got %+v", name, response)
		}
	}
}

// The generated configuration cannot stop a cluster: nobody waits long, nothing is refused where no answer comes, and
// what the cluster needs to get well again is not asked for.
func TestConfigurationCannotStopACluster(t *testing.T) {
	raw, err := os.ReadFile("../../config/webhook/manifests.yaml")
	if err != nil {
		t.Fatal(err)
	}
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{}
	first := slices.IndexFunc(strings.Split(string(raw), "\n---\n"), func(s string) bool { return strings.Contains(s, "kind: Mutating") })
	if err := yaml.UnmarshalStrict([]byte(strings.Split(string(raw), "\n---\n")[first]), configuration); err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(configuration.Webhooks, func(w admissionregistrationv1.MutatingWebhook) bool { return *w.ClientConfig.Service.Path == PathPod })
	hook := configuration.Webhooks[at]
	if *hook.FailurePolicy != admissionregistrationv1.Ignore || *hook.TimeoutSeconds > 2 || *hook.ReinvocationPolicy != admissionregistrationv1.IfNeededReinvocationPolicy {
		t.Errorf("failurePolicy %s, timeout %d, reinvocationPolicy %s", *hook.FailurePolicy, *hook.TimeoutSeconds, *hook.ReinvocationPolicy)
	}
	if diff := cmp.Diff([]admissionregistrationv1.OperationType{admissionregistrationv1.Create}, hook.Rules[0].Operations); diff != "" {
		t.Error(diff)
	}
	asked := func(selector *metav1.LabelSelector, set labels.Set) bool {
		matcher, err := metav1.LabelSelectorAsSelector(selector)
		if err != nil {
			t.Fatal(err)
		}
		return matcher.Matches(set)
	}
	for _, test := range []struct {
		namespace, pod labels.Set
		want           bool
	}{
		{labels.Set{"kubernetes.io/metadata.name": "default"}, nil, true},
		{labels.Set{"kubernetes.io/metadata.name": "kube-system"}, nil, false},
		{labels.Set{"kubernetes.io/metadata.name": "kube-public"}, nil, false},
		{labels.Set{"kubernetes.io/metadata.name": "kube-node-lease"}, nil, false},
		{labels.Set{"kubernetes.io/metadata.name": "nginx-operator-examples-system"}, nil, false},
		{labels.Set{"kubernetes.io/metadata.name": "shop", "kruise.io/sidecarset-injection": "disabled"}, nil, false},
		{labels.Set{"kubernetes.io/metadata.name": "shop", "kruise.io/sidecarset-injection": "enabled"}, nil, true},
		{labels.Set{"kubernetes.io/metadata.name": "shop"}, labels.Set{"kruise.io/sidecarset-injection": "disabled"}, false},
	} {
		if got := asked(hook.NamespaceSelector, test.namespace) && asked(hook.ObjectSelector, test.pod); got != test.want {
			t.Errorf("namespace %v, Pod %v: asked %t", test.namespace, test.pod, got)
		}
	}
}

func TestOwnNamespace(t *testing.T) {
	mounted := func(string) ([]byte, error) { return []byte("mounted\n"), nil }
	none := func(string) ([]byte, error) { return nil, os.ErrNotExist }
	env := func(value string) func(string) (string, bool) {
		return func(name string) (string, bool) { return value, name == "POD_NAMESPACE" }
	}
	for _, test := range []struct {
		env  string
		file func(string) ([]byte, error)
		want string
	}{{"given", mounted, "given"}, {"", mounted, "mounted"}, {"", none, ""}} {
		if got := ownNamespace(env(test.env), test.file); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}
