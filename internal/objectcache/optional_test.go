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
	const crd = `CustomResourceDefinition "widgets.example.com" `
	const unserved = crd + "does not serve version v1"
	const gone = crd + "does not exist, is not established, or is being deleted"
	for name, test := range map[string]struct {
		change func(*apiextensionsv1.CustomResourceDefinition)
		want   string
	}{
		"served":          {func(*apiextensionsv1.CustomResourceDefinition) {}, ""},
		"being deleted":   {func(c *apiextensionsv1.CustomResourceDefinition) { c.DeletionTimestamp = ptr.To(metav1.Now()) }, gone},
		"not established": {func(c *apiextensionsv1.CustomResourceDefinition) { c.Status.Conditions[1].Status = "False" }, gone},
		"another version": {func(c *apiextensionsv1.CustomResourceDefinition) { c.Spec.Versions[1].Served = false }, unserved},
		"missing":         {nil, gone},
	} {
		crd := apiextensionsv1.CustomResourceDefinition{
			Spec: apiextensionsv1.CustomResourceDefinitionSpec{Versions: []apiextensionsv1.CustomResourceDefinitionVersion{
				{Name: "v1beta1", Served: true}, {Name: "v1", Served: true},
			}},
			Status: apiextensionsv1.CustomResourceDefinitionStatus{Conditions: []apiextensionsv1.CustomResourceDefinitionCondition{
				{Type: apiextensionsv1.NamesAccepted, Status: "True"}, {Type: apiextensionsv1.Established, Status: "True"},
			}},
		}
		var crds []apiextensionsv1.CustomResourceDefinition
		if test.change != nil {
			test.change(&crd)
			crds = append(crds, crd)
		}
		if got := problemOf(crds, "widgets.example.com", "v1"); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}
