package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/wellknown"
)

// tenantRules writes values as a tenant that would misuse the permissions of the operator: rules
// that bypass the namespace's default-deny, a ServiceAccount token in every container, a scrape
// interval that overloads a Prometheus, text for the configuration of an Ingress controller, and
// directives for the main context through v1alpha1. The API server must reject each value with the
// field and the remedy, on creation and on the update of a ready instance.
func tenantRules(t *testing.T, attacker *tenant) {
	t.Helper()
	served := newObject(attacker.namespace, "rules", 1)
	must(t, attacker.Create(t.Context(), served))
	patch := func(kind, text string) func(*v1alpha2.NginxOperatorSpec) {
		return func(s *v1alpha2.NginxOperatorSpec) {
			s.Patches = []v1alpha2.Patch{{Target: v1alpha2.PatchTarget{Kind: kind}, Patch: text}}
		}
	}
	ingress := func(host string, paths ...string) func(*v1alpha2.NginxOperatorSpec) {
		return func(s *v1alpha2.NginxOperatorSpec) {
			s.Expose = &v1alpha2.Expose{Ingress: &v1alpha2.Ingress{Hosts: []v1alpha2.IngressHost{{Host: host, Paths: paths}}}}
		}
	}
	for name, test := range map[string]struct {
		change func(*v1alpha2.NginxOperatorSpec)
		want   string
	}{
		"egress": {
			patch("NetworkPolicy", "spec: {policyTypes: [Ingress, Egress], egress: [{}]}"),
			"a patch cannot change spec.egress: create a NetworkPolicy of your own",
		},
		"ingress": {
			patch("NetworkPolicy", "[{op: add, path: /spec/ingress/-, value: {}}]"), "a patch cannot change spec.ingress: set spec.networkPolicy",
		},
		"a type": {
			patch("NetworkPolicy", "[{op: add, path: /spec/policyTypes/-, value: Egress}]"), "a patch cannot change spec.policyTypes",
		},
		"a token": {
			patch("Deployment", "spec: {template: {spec: {automountServiceAccountToken: true}}}"),
			"automountServiceAccountToken: declare the token in spec.volumes",
		},
		"a scrape each second": {
			func(s *v1alpha2.NginxOperatorSpec) {
				s.Monitoring = &v1alpha2.Monitoring{PodMonitor: &v1alpha2.PodMonitor{Interval: "1s"}}
			},
			"interval must be at least 5s",
		},
		"a quoted path":     {ingress("a.example.com", `/"; return 200; #`), "write them percent-encoded"},
		"a block in a path": {ingress("a.example.com", "/a{}"), "write them percent-encoded"},
		"a line in a path":  {ingress("a.example.com", "/a\nb"), "write them percent-encoded"},
		"a block in a host": {ingress("a{}.example.com"), "write a DNS name"},
	} {
		created := newObject(attacker.namespace, "refused", 1)
		test.change(&created.Spec)
		if err := attacker.Create(t.Context(), created); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s, created: want %q, got: %v", name, test.want, err)
		}
		must(t, attacker.Get(t.Context(), client.ObjectKeyFromObject(served), served))
		before := client.MergeFrom(served.DeepCopy())
		test.change(&served.Spec)
		if err := attacker.Patch(t.Context(), served, before); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s, changed: want %q, got: %v", name, test.want, err)
		}
	}
	for name, spec := range map[string]v1alpha2.NginxOperatorSpec{
		"spec.nginx.errorLogLevel: Unsupported value": {Nginx: &v1alpha2.Nginx{ErrorLogLevel: "notice; load_module /x.so; env A"}},
		"spec.service.type: Unsupported value":        {Service: &v1alpha2.Service{Type: "Other"}},
		"interval must be at least 5s":                {Monitoring: &v1alpha2.Monitoring{PodMonitor: &v1alpha2.PodMonitor{Interval: "1s"}}},
	} {
		raw, err := json.Marshal(spec)
		must(t, err)
		annotated := &v1alpha1.NginxOperator{}
		annotated.Namespace, annotated.Name = attacker.namespace, "annotated"
		annotated.Annotations = map[string]string{wellknown.AnnotationV1alpha2: string(raw)}
		if err := attacker.Create(t.Context(), annotated); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("through v1alpha1: want %q, got: %v", name, err)
		}
	}
	must(t, attacker.Delete(t.Context(), served))
}
