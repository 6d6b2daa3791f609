package inputs

import (
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/fixture"
)

// TestFilesAreIndexed verifies that objects are indexed by the references in spec.files.
func TestFilesAreIndexed(t *testing.T) {
	spec := &fixture.NewObject(fixture.WithFiles("a", "b")).Spec
	if got := slices.Concat(namedConfigMaps(spec), namedSecrets(spec)); !slices.Equal(got, []string{"snippets", "snippets", "readers"}) {
		t.Error(got)
	}
}

// TestNamedReferences verifies that objects are indexed by all their references.
func TestNamedReferences(t *testing.T) {
	spec := &fixture.NewObject(configFrom(""), contentFrom("pages"), certificateFrom("a", "b")).Spec
	if diff := gocmp.Diff([]string{"servers", "pages"}, namedConfigMaps(spec)); diff != "" {
		t.Errorf("ConfigMaps (-want +got):\n%s", diff)
	}
	if diff := gocmp.Diff([]string{"a", "b"}, namedSecrets(spec)); diff != "" {
		t.Errorf("Secrets (-want +got):\n%s", diff)
	}
	bare := &v1alpha2.NginxOperatorSpec{Config: &v1alpha2.Config{Inline: "server {}"}, Replicas: ptr.To[int32](1)}
	if names := append(namedConfigMaps(bare), namedSecrets(bare)...); len(names) != 0 {
		t.Errorf("an object that names nothing is found by %v", names)
	}
}
