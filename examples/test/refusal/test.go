package refusal

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Test requires of a definition that it takes all of its kind in an example's sample folder, and that it refuses each
// manifest of its testdata/refused with the message that the manifest asks for. Unknown fields are refused before the
// schema is asked, so the manifests about them are left to tests on an API server.
func Test(t *testing.T, definition, example string) {
	schema, err := Load(definition)
	if err != nil {
		t.Fatal(err)
	}
	manifests, err := Read(filepath.Join(example, "testdata", "refused"))
	if err != nil {
		t.Fatal(err)
	}
	kind := manifests[0].Object.GroupVersionKind()
	for _, manifest := range manifests {
		if strings.HasPrefix(manifest.Want, "unknown field") {
			continue
		}
		t.Run(manifest.Name, func(t *testing.T) {
			if err := schema.Create(manifest.Object); err == nil || !strings.Contains(err.Error(), manifest.Want) {
				t.Errorf("want a refusal with %q, got: %v", manifest.Want, err)
			}
		})
	}
	taken := 0
	for _, object := range samples(t, filepath.Join(example, "sample")) {
		if object.GroupVersionKind() != kind {
			continue
		}
		taken++
		if err := schema.Create(object); err != nil {
			t.Errorf("the sample %s is refused: %v", object.GetName(), err)
		}
	}
	if taken == 0 {
		t.Errorf("there is no sample of %s", kind.Kind)
	}
}

// samples returns the objects of a folder's YAML files.
func samples(t *testing.T, dir string) []*unstructured.Unstructured {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var out []*unstructured.Unstructured
	for _, path := range paths {
		raw, err := os.ReadFile(filepath.Clean(path))
		if err != nil {
			t.Fatal(err)
		}
		for document := range bytes.SplitSeq(raw, []byte("\n---\n")) {
			object := &unstructured.Unstructured{}
			if err := decode(document, object); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			out = append(out, object)
		}
	}
	return out
}
