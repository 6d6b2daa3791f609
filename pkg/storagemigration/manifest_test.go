package storagemigration

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	released    = "../../config/storagemigration/storageversionmigration.yaml"
	releasedCRD = "nginxoperators.operator.example.com"
)

// TestManifest verifies that the manifest of the release becomes an object of each API.
func TestManifest(t *testing.T) {
	manifest, err := Load(released, releasedCRD)
	if err != nil {
		t.Fatal(err)
	}
	for _, api := range apis {
		object, err := forCRD(manifest, api, crdOf(newer, older, newer))
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"group": "operator.example.com", "resource": "nginxoperators"}
		if api.Group == kubeMigratorGroup {
			want["version"] = newer
		}
		got, _, err := unstructured.NestedStringMap(object.Object, "spec", "resource")
		if err != nil || !maps.Equal(got, want) {
			t.Errorf("%s: spec.resource is %v, %v", api, got, err)
		}
		made, err := newMigration(object)
		if err != nil || made.crd != theUID || made.generation != "7" || object.GetAPIVersion() != api.GroupVersion().String() {
			t.Errorf("%s: %+v, %v", api, made, err)
		}
	}
	if manifest.GetOwnerReferences() != nil {
		t.Error("the manifest was changed")
	}
}

func TestBadManifest(t *testing.T) {
	good, err := os.ReadFile(released)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ change, to, want string }{
		"not YAML":         {"kind:", "\tkind", "failed to read the storage migration"},
		"another kind":     {"kind: StorageVersionMigration", "kind: ConfigMap", `kind "ConfigMap"`},
		"another name":     {"name: nginxoperators.operator.example.com", "name: web", `metadata.name "web"`},
		"another resource": {"resource: nginxoperators", "resource: pods", `spec.resource "pods.operator.example.com"`},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(string(good), test.change, test.to, 1)
			if text == string(good) {
				t.Fatal("nothing was changed")
			}
			file := filepath.Join(t.TempDir(), "manifest.yaml")
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil { // #nosec G703 -- a temporary directory
				t.Fatal(err)
			}
			_, err := Load(file, releasedCRD)
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "manifest.yaml") {
				t.Errorf("error %v", err)
			}
		})
	}
	if _, err := Load("nowhere.yaml", releasedCRD); err == nil || !strings.Contains(err.Error(), "nowhere.yaml") {
		t.Errorf("error %v", err)
	}
}
