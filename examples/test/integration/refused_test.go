package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/test/harness"
)

// TestRefused checks that the schema, its rules, or the webhook reject each manifest in
// testdata/refused, with the message in its first line. An older API server may have another
// message, which the second line has then.
func TestRefused(t *testing.T) {
	files := harness.Must1(filepath.Glob("../../*/testdata/refused/*.yaml"))(t)
	if len(files) < 50 {
		t.Errorf("found %d manifests", len(files))
	}
	namespace := newNamespace(t)
	// Like kubectl, make the API server reject unknown fields.
	strict := client.WithFieldValidation(suite.admin, "Strict")
	for _, file := range files {
		raw := harness.Must1(os.ReadFile(file))(t)
		lines := strings.SplitN(string(raw), "\n", 3)
		want, found := strings.CutPrefix(lines[0], "# ")
		if older, differs := strings.CutPrefix(lines[1], "# older: "); differs && harness.OnOlderAPIServer() {
			want = older
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(raw, &object.Object); err != nil || !found {
			t.Fatalf("%s is no manifest with a message: %v", file, err)
		}
		if namespaced, err := suite.admin.IsObjectNamespaced(object); err != nil || namespaced {
			object.SetNamespace(namespace)
		}
		if err := strict.Create(t.Context(), object); !harness.Says(err, want) {
			t.Errorf("%s: want a refusal with %q, got: %v", file, want, err)
		}
	}
}
