package policy

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/hack/kustomize"
)

const (
	config      = "../../../config"
	namespace   = "elsewhere"
	webhooks    = "nginx-operator-own-webhooks"
	crd         = "nginx-operator-own-crd"
	operator    = "system:serviceaccount:" + namespace + ":nginx-operator-controller-manager"
	certificate = "certificate"
)

// rendered returns the objects of a limited installation by kind and name. The overlay sets another
// namespace.
func rendered(t *testing.T, kustomization types.Kustomization) map[string]*unstructured.Unstructured {
	t.Helper()
	kustomization.Resources, kustomization.Components = []string{"default"}, []string{"components/watch-namespaces"}
	all, err := kustomize.Render(config, kustomization)
	must(t, err)
	out := map[string]*unstructured.Unstructured{}
	for _, one := range all.Resources() {
		object := &unstructured.Unstructured{}
		must(t, yaml.Unmarshal([]byte(one.MustYaml()), &object.Object))
		out[object.GetKind()+" "+object.GetName()] = object
	}
	return out
}

// compiled returns the policies of an installation by name, for a version of Kubernetes.
func compiled(t *testing.T, objects map[string]*unstructured.Unstructured, kubernetes *version.Version) map[string]*Policy {
	t.Helper()
	out := map[string]*Policy{}
	for _, object := range objects {
		if object.GetKind() != "ValidatingAdmissionPolicy" {
			continue
		}
		source := &admissionregistrationv1.ValidatingAdmissionPolicy{}
		must(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, source, true))
		policy, err := Compile(source, kubernetes)
		if err != nil {
			t.Fatalf("Kubernetes %s does not accept %s: %v", kubernetes, source.Name, err)
		}
		out[source.Name] = policy
	}
	return out
}

// oldest returns the oldest version of Kubernetes that the operator supports.
func oldest(t *testing.T) *version.Version {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(config, "manifests", "bases", "nginx-operator.clusterserviceversion.yaml"))
	must(t, err)
	var csv struct {
		Spec struct{ MinKubeVersion string }
	}
	must(t, yaml.Unmarshal(raw, &csv))
	out, err := version.ParseGeneric(csv.Spec.MinKubeVersion)
	must(t, err)
	return out
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// typed returns an object as its Go type.
func typed(t *testing.T, object *unstructured.Unstructured) runtime.Object {
	t.Helper()
	known := runtime.NewScheme()
	must(t, scheme.AddToScheme(known))
	must(t, apiextensionsv1.AddToScheme(known))
	out, err := known.New(object.GroupVersionKind())
	must(t, err)
	must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, out))
	return out
}

// TestOwnWebhooks verifies that the policies of a limited installation allow the writes that the
// operator needs, and refuse all others, with the expressions of the oldest and the newest
// Kubernetes, and with both forms in which API servers evaluate objects.
func TestOwnWebhooks(t *testing.T) {
	objects := rendered(t, types.Kustomization{Namespace: namespace})
	ca := []byte(certificate)
	for name, test := range map[string]struct {
		policy, subresource string
		writes              []Write
	}{
		"MutatingWebhookConfiguration nginx-operator-mutating-webhook-configuration": {
			webhooks, "", append(WritesOfWebhooks(namespace, ca), WritesOfMutatingWebhooks()...),
		},
		"ValidatingWebhookConfiguration nginx-operator-validating-webhook-configuration": {webhooks, "", WritesOfWebhooks(namespace, ca)},
		"CustomResourceDefinition nginxoperators.operator.example.com":                   {crd, "", WritesOfCRD(namespace, ca)},
		"CustomResourceDefinition nginxoperators.operator.example.com ":                  {crd, "status", WritesOfStatus()},
	} {
		object := objects[strings.TrimSpace(name)]
		if object == nil {
			t.Fatalf("there is no %s", name)
		}
		if object.GetKind() == "CustomResourceDefinition" {
			set("storedVersions", []any{"v1alpha2"}, "status")(object.Object)
			set("conditions", []any{fields{"type": "Established", "status": "True"}}, "status")(object.Object)
			set("singular", "nginxoperator", "status", "acceptedNames")(object.Object)
		}
		for _, kubernetes := range []*version.Version{oldest(t), Newest()} {
			policy := compiled(t, objects, kubernetes)[test.policy]
			for _, write := range test.writes {
				t.Run(kubernetes.String()+"/"+object.GetKind()+"/"+write.Name, func(t *testing.T) {
					before := object.DeepCopy()
					if write.Prepare != nil {
						write.Prepare(before.Object)
					}
					after := before.DeepCopy()
					write.Change(after.Object)
					request := Request{User: operator, Subresource: test.subresource, Object: after, OldObject: before}
					requireVerdict(t, policy, request, write.Refusal)
					request.Object, request.OldObject = typed(t, after), typed(t, before)
					requireVerdict(t, policy, request, write.Refusal)

					for _, other := range []string{"admin", "system:serviceaccount:" + namespace + ":default"} {
						request.User = other
						if matches, _, err := policy.Evaluate(t.Context(), request); matches || err != nil {
							t.Errorf("the policy applies to %s: %v", other, err)
						}
					}
				})
			}
		}
	}
}

// requireVerdict requires that the policy applies to a request, and refuses it with a message that
// contains a text. If the text is empty, the policy must allow the request.
func requireVerdict(t *testing.T, policy *Policy, request Request, refusal string) {
	t.Helper()
	matches, refusals, err := policy.Evaluate(t.Context(), request)
	if err != nil || !matches {
		t.Fatalf("%T: the policy applies: %t, %v", request.Object, matches, err)
	}
	if refusal == "" && len(refusals) > 0 {
		t.Errorf("%T: refused: %q", request.Object, refusals)
	}
	if refusal != "" && !slices.ContainsFunc(refusals, func(one string) bool { return strings.Contains(one, refusal) }) {
		t.Errorf("%T: want a refusal with %q, got %q", request.Object, refusal, refusals)
	}
}

// TestOwnWebhooksInOverlays verifies that the policies apply to the account of the operator and
// accept its Service if a kustomization changes the namespace and the names.
func TestOwnWebhooksInOverlays(t *testing.T) {
	for _, kustomization := range []types.Kustomization{{}, {Namespace: namespace}, {NamePrefix: "p-"}, {NameSuffix: "-s"}} {
		objects := rendered(t, kustomization)
		user, in, policies := "", "", 0
		for name, object := range objects {
			switch object.GetKind() {
			case "Deployment":
				account, _, _ := unstructured.NestedString(object.Object, "spec", "template", "spec", "serviceAccountName")
				in = object.GetNamespace()
				user = "system:serviceaccount:" + in + ":" + account
			case "ValidatingAdmissionPolicyBinding":
				policies++
				policy, _, _ := unstructured.NestedString(object.Object, "spec", "policyName")
				if objects["ValidatingAdmissionPolicy "+policy] == nil {
					t.Errorf("%+v: %s references the policy %s, which does not exist", kustomization, name, policy)
				}
			}
		}
		if policies != 2 || in == "" || kustomization.Namespace != "" && in != kustomization.Namespace {
			t.Fatalf("%+v: %d bindings, namespace %s", kustomization, policies, in)
		}
		for name, policy := range compiled(t, objects, oldest(t)) {
			if objects["ValidatingAdmissionPolicy "+name].GetNamespace() != "" {
				t.Errorf("%+v: %s is in a namespace", kustomization, name)
			}
			request := Request{User: user, Object: object(in), OldObject: object("")}
			if strings.Contains(name, "crd") {
				requireVerdict(t, policy, request, "")
				request.Object = object("other-" + in)
				requireVerdict(t, policy, request, "must call its own Service")
			} else if matches, _, err := policy.Evaluate(t.Context(), request); !matches || err != nil {
				t.Errorf("%+v: %s applies to %s: %t, %v", kustomization, name, user, matches, err)
			}
		}
	}
}

// object returns a CRD whose conversion calls the operator's Service in a namespace. Without a
// namespace, it has no conversion. Both policies evaluate it without an error.
func object(namespace string) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: fields{"metadata": fields{}, "spec": fields{}}}
	if namespace != "" {
		set("clientConfig", toService(namespace, ownService), "spec", "conversion", "webhook")(out.Object)
	}
	return out
}
