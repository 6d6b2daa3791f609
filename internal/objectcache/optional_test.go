package objectcache

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// TestProblem verifies that a kind is served at a version if its CustomResourceDefinition serves
// the version, is established, and is not being deleted.
func TestProblem(t *testing.T) {
	const gone = "does not exist, is not established or is being deleted"
	for name, test := range map[string]struct {
		change func(*apiextensionsv1.CustomResourceDefinition)
		want   string
	}{
		"served":          {func(*apiextensionsv1.CustomResourceDefinition) {}, ""},
		"being deleted":   {func(c *apiextensionsv1.CustomResourceDefinition) { c.DeletionTimestamp = ptr.To(metav1.Now()) }, gone},
		"not established": {func(c *apiextensionsv1.CustomResourceDefinition) { c.Status.Conditions[1].Status = "False" }, gone},
		"another version": {func(c *apiextensionsv1.CustomResourceDefinition) { c.Spec.Versions[1].Served = false }, "does not serve version v1"},
	} {
		crd := apiextensionsv1.CustomResourceDefinition{
			Spec: apiextensionsv1.CustomResourceDefinitionSpec{Versions: []apiextensionsv1.CustomResourceDefinitionVersion{
				{Name: "v1beta1", Served: true}, {Name: "v1", Served: true},
			}},
			Status: apiextensionsv1.CustomResourceDefinitionStatus{Conditions: []apiextensionsv1.CustomResourceDefinitionCondition{
				{Type: apiextensionsv1.NamesAccepted, Status: "True"}, {Type: apiextensionsv1.Established, Status: "True"},
			}},
		}
		test.change(&crd)
		requireProblem(t, name, []apiextensionsv1.CustomResourceDefinition{crd}, test.want)
	}
	requireProblem(t, "missing", nil, gone)
}

func requireProblem(t *testing.T, name string, crds []apiextensionsv1.CustomResourceDefinition, want string) {
	t.Helper()
	if want != "" {
		want = `CustomResourceDefinition "widgets.example.com" ` + want
	}
	if got := problemOf(crds, "widgets.example.com", "v1"); got != want {
		t.Errorf("%s: got %q, want %q", name, got, want)
	}
}
