package optional

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

const name = "widgets.example.com"

func newCRD(change func(*apiextensionsv1.CustomResourceDefinition)) *apiextensionsv1.CustomResourceDefinition {
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: "1", ResourceVersion: "2", Annotations: map[string]string{"a": "b"}},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{Group: "example.com", Versions: []apiextensionsv1.CustomResourceDefinitionVersion{
			{Name: "v1beta1", Served: true, Schema: &apiextensionsv1.CustomResourceValidation{}}, {Name: "v1", Served: true, Storage: true},
		}},
		Status: apiextensionsv1.CustomResourceDefinitionStatus{Conditions: []apiextensionsv1.CustomResourceDefinitionCondition{
			{Type: apiextensionsv1.NamesAccepted, Status: "True"}, {Type: apiextensionsv1.Established, Status: "True", Message: "yes"},
		}},
	}
	if change != nil {
		change(crd)
	}
	return crd
}

// TestProblem verifies that a kind is served at a version if its CustomResourceDefinition serves
// the version, is established, and is not being deleted. The stripped object has the same result.
func TestProblem(t *testing.T) {
	const gone = "does not exist, is not established or is being deleted"
	for _, test := range []struct {
		crd  *apiextensionsv1.CustomResourceDefinition
		want string
	}{
		{newCRD(nil), ""},
		{nil, gone},
		{newCRD(func(c *apiextensionsv1.CustomResourceDefinition) { c.DeletionTimestamp = ptr.To(metav1.Now()) }), gone},
		{newCRD(func(c *apiextensionsv1.CustomResourceDefinition) { c.Status.Conditions[1].Status = "False" }), gone},
		{newCRD(func(c *apiextensionsv1.CustomResourceDefinition) { c.Spec.Versions[1].Served = false }), "does not serve version v1"},
	} {
		crd, want := test.crd, test.want
		if want != "" {
			want = `CustomResourceDefinition "widgets.example.com" ` + want
		}
		if got := problemOf(crd, name, "v1"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if crd == nil {
			continue
		}
		if _, err := stripCRD(crd); err != nil {
			t.Fatal(err)
		}
		if got := problemOf(crd, name, "v1"); got != want {
			t.Errorf("of what is kept: got %q, want %q", got, want)
		}
	}
}

func TestSlim(t *testing.T) {
	got := newCRD(nil)
	if _, err := stripCRD(got); err != nil {
		t.Fatal(err)
	}
	want := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: "1", ResourceVersion: "2"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{Versions: []apiextensionsv1.CustomResourceDefinitionVersion{
			{Name: "v1beta1", Served: true}, {Name: "v1", Served: true},
		}},
		Status: apiextensionsv1.CustomResourceDefinitionStatus{Conditions: []apiextensionsv1.CustomResourceDefinitionCondition{
			{Type: apiextensionsv1.Established, Status: "True"},
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if out, err := stripCRD("text"); out != "text" || err != nil {
		t.Errorf("what is none becomes %v, %v", out, err)
	}
}
