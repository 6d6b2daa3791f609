package operand

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/nginx-operator/internal/fixture"
	"github.com/example/nginx-operator/internal/wellknown"
)

// TestSuffix verifies that, after a forgery, all ConfigMaps get names that a client cannot guess.
// The Deployment gets the suffix in the same write that mounts the ConfigMaps. An invalid
// annotation is not used in a name.
func TestSuffix(t *testing.T) {
	object := fixture.NewObject(fixture.WithFiles("a/b.conf"))
	in := Inputs{Config: Configuration{Hash: "0123456789"}, Content: &Content{Hash: "1123456789"}, Files: &Content{Hash: "2123456789"}}
	before := DesiredDeployment(object, in)
	if _, found := before.Annotations[wellknown.AnnotationContent]; found {
		t.Errorf("annotations %v without a forgery", before.Annotations)
	}
	in.Suffix = NewSuffix()
	if in.Suffix == NewSuffix() {
		t.Error("two suffixes are the same")
	}
	after := DesiredDeployment(object, in)
	if got := SuffixOf(after); got != in.Suffix {
		t.Errorf("the Deployment keeps %q of %q", got, in.Suffix)
	}
	raw, err := json.Marshal(after.Spec.Template)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{ConfigName(object, in), ContentName(object, in), FilesName(object, in)} {
		if !strings.HasSuffix(name, in.Suffix) || !strings.Contains(string(raw), name) {
			t.Errorf("the Pods do not mount %s", name)
		}
	}
	for _, hostile := range []string{"", "x", "../../x", "0123456", "012345678", "ABCDEF01", "0123456\n"} {
		after.Annotations[wellknown.AnnotationContent] = hostile
		if got := SuffixOf(after); got != "" {
			t.Errorf("%q is a suffix of %q", got, hostile)
		}
	}
	if SuffixOf(nil) != "" {
		t.Error("a suffix of no Deployment")
	}
	WithoutSuffix(&after.Spec.Template.Spec)
	if diff := cmp.Diff(before.Spec.Template, after.Spec.Template); diff != "" {
		t.Errorf("without the suffix (-before +after):\n%s", diff)
	}
}
