package validation

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/internal/schema/schematest"
)

// TestRulesOnTheOldestKubernetes verifies that every rule of the CRD compiles on the oldest
// supported Kubernetes. An API server rejects a new rule that uses features of its own version
// only, so that a downgrade can read the rule. Without this test, the CRD could not be installed
// there.
func TestRulesOnTheOldestKubernetes(t *testing.T) {
	var csv struct {
		Spec struct{ MinKubeVersion string }
	}
	readYAML(t, "../../config/manifests/bases/nginx-operator.clusterserviceversion.yaml", &csv)
	oldest, err := version.ParseGeneric(csv.Spec.MinKubeVersion)
	if err != nil {
		t.Fatal(err)
	}
	env, err := environment.MustBaseEnvSet(oldest.SubtractMinor(1)).NewExpressionsEnv().Extend(
		cel.Variable("self", cel.DynType), cel.Variable("oldSelf", cel.DynType))
	if err != nil {
		t.Fatal(err)
	}

	count := 0
	eachRule(t, func(path string, rule apiextensionsv1.ValidationRule) {
		count++
		if _, issues := env.Compile(rule.Rule); issues.Err() != nil {
			t.Errorf("%s: Kubernetes %s does not take %s\n%v", path, csv.Spec.MinKubeVersion, strings.TrimSpace(rule.Rule), issues.Err())
		}
	})
	if count < 20 {
		t.Errorf("only %d rules were found", count)
	}
}

// TestEveryRuleIsTried verifies that the tests on an API server see the message of each rule of
// v1alpha2. A message cannot change after 0.7.1 (docs/adr/0052-rules-are-frozen.md).
func TestEveryRuleIsTried(t *testing.T) {
	// These rules compare metadata, or the object before the update. Other tests try them.
	elsewhere := []string{
		"metadata.name must be a DNS label", "loadBalancerClass cannot be changed", "the first entry of ipFamilies cannot be changed",
	}
	refusals, err := os.ReadFile("../../test/integration/testdata/refusals.txt")
	if err != nil {
		t.Fatal(err)
	}
	eachRule(t, func(path string, rule apiextensionsv1.ValidationRule) {
		isElsewhere := slices.ContainsFunc(elsewhere, func(prefix string) bool { return strings.HasPrefix(rule.Message, prefix) })
		if !isElsewhere && !strings.Contains(string(refusals), rule.Message) {
			t.Errorf("%s: no test sees %q", path, rule.Message)
		}
	})
}

// eachRule calls do for each rule of the CRD.
func eachRule(t *testing.T, do func(path string, rule apiextensionsv1.ValidationRule)) {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	readYAML(t, "../../config/crd/bases/operator.example.com_nginxoperators.yaml", crd)
	for _, served := range crd.Spec.Versions {
		schematest.Each(served.Schema.OpenAPIV3Schema, served.Name, func(path string, schema *apiextensionsv1.JSONSchemaProps) {
			for _, rule := range schema.XValidations {
				do(path, rule)
			}
		})
	}
}

func readYAML(t *testing.T, file string, into any) {
	t.Helper()
	raw, err := os.ReadFile(file) //nolint:gosec // a file of the repository
	if err == nil {
		err = yaml.Unmarshal(raw, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}
