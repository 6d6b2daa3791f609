package policy

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/internal/schema/schematest"
)

// tenantPolicy returns the policy of docs/guide/multi-tenancy.md.
func tenantPolicy(t *testing.T, kubernetes *version.Version) *Policy {
	t.Helper()
	page, err := os.ReadFile("../../../docs/guide/multi-tenancy.md")
	must(t, err)
	text := regexp.MustCompile("(?ms)^```yaml\n(apiVersion: \\S+\nkind: ValidatingAdmissionPolicy\n.*?)^---$").FindSubmatch(page)
	if text == nil {
		t.Fatal("the page has no policy")
	}
	source := &admissionregistrationv1.ValidatingAdmissionPolicy{}
	must(t, yaml.UnmarshalStrict(text[1], source))
	policy, err := Compile(source, kubernetes)
	if err != nil {
		t.Fatalf("Kubernetes %s does not accept the policy: %v", kubernetes, err)
	}
	return policy
}

// TestTenantPolicy verifies the policy of docs/guide/multi-tenancy.md with the expressions of the
// oldest and the newest Kubernetes. TestMultiTenancy verifies it on an API server.
func TestTenantPolicy(t *testing.T) {
	namespace := &corev1.Namespace{}
	namespace.Labels = map[string]string{"example.com/tenant": "shop"}
	for _, kubernetes := range []*version.Version{oldest(t), Newest()} {
		policy := tenantPolicy(t, kubernetes)
		for spec, refusal := range TenantSpecs() {
			object := &unstructured.Unstructured{Object: fields{}}
			must(t, yaml.Unmarshal([]byte("spec: "+spec), &object.Object))
			t.Run(kubernetes.String()+"/"+spec, func(t *testing.T) {
				requireVerdict(t, policy, Request{User: "jane", Object: object, Namespace: namespace}, refusal)
			})
		}
	}
}

// TestTenantSpecsAreComplete verifies that TenantSpecs has a refused spec for each field of the API
// that can carry a name under which an instance is reachable. It fails for a new field of this kind.
func TestTenantSpecsAreComplete(t *testing.T) {
	carries := regexp.MustCompile(`\.(annotations|labels|[a-zA-Z]*([hH]ost|[dD]omain)(s|names?)?|[a-zA-Z]*[cC]lass(Name)?|[a-zA-Z]*IPs?)$`)
	harmless := map[string]string{
		"spec.expose.ingress.hosts":          "a list, whose field host carries the name",
		"spec.expose.ingress.className":      "chooses the Ingress controller",
		"spec.service.loadBalancerClass":     "chooses the load balancer, which has an address",
		"spec.monitoring.podMonitor.labels":  "Prometheus reads the object, and no client is routed by it",
		"spec.monitoring.alerts.labels":      "Prometheus reads the object, and no client is routed by it",
		"spec.podTemplate.priorityClassName": "a priority",

		"spec.podTemplate.topologySpreadConstraints[].minDomains": "a number of zones",
	}
	raw, err := os.ReadFile(filepath.Join(config, "crd", "bases", "operator.example.com_nginxoperators.yaml"))
	must(t, err)
	definition := &apiextensionsv1.CustomResourceDefinition{}
	must(t, yaml.UnmarshalStrict(raw, definition))
	found := map[string]bool{}
	for _, served := range definition.Spec.Versions {
		if served.Name != "v1alpha2" {
			continue
		}
		spec := served.Schema.OpenAPIV3Schema.Properties["spec"]
		schematest.Each(&spec, "spec", func(path string, _ *apiextensionsv1.JSONSchemaProps) {
			if carries.MatchString(path) {
				found[path] = true
			}
		})
	}
	for path := range harmless {
		if !found[path] {
			t.Errorf("%s does not exist", path)
		}
	}
	for path := range found {
		if harmless[path] == "" && !refusedAt(t, path) {
			t.Errorf("TenantSpecs has no refused spec with %s", path)
		}
	}
	if len(found) < 10 {
		t.Errorf("only %d fields carry names", len(found))
	}
}

// refusedAt reports whether TenantSpecs has a refused spec that sets the field at a path.
func refusedAt(t *testing.T, path string) bool {
	t.Helper()
	for spec, refusal := range TenantSpecs() {
		object := fields{}
		must(t, yaml.Unmarshal([]byte("spec: "+spec), &object))
		var value any = object
		for step := range strings.SplitSeq(path, ".") {
			inner, _ := value.(fields)
			value = inner[strings.TrimSuffix(step, "[]")]
			if list, ok := value.([]any); ok && strings.HasSuffix(step, "[]") && len(list) > 0 {
				value = list[0]
			}
		}
		if value != nil && refusal != "" {
			return true
		}
	}
	return false
}
