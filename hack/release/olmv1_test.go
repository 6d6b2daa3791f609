package main

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/example/nginx-operator/hack/kustomize"
)

// TestOLMv1Manifests checks that config/olm-v1 creates no ServiceAccount, because
// operator-controller ignores it from 1.11 on, and that config/olm-v1-before-1.11 adds the account
// with its permissions and nothing else.
func TestOLMv1Manifests(t *testing.T) {
	render := func(directory string) (objects []string, account any) {
		rendered, err := kustomize.Render("../../config", types.Kustomization{Resources: []string{directory}})
		must(t, err)
		for _, object := range rendered.Resources() {
			objects = append(objects, object.GetKind()+" "+object.GetName())
			if object.GetKind() == "ClusterExtension" {
				content, err := object.Map()
				must(t, err)
				spec, _ := content["spec"].(map[string]any)
				account = spec["serviceAccount"]
			}
		}
		slices.Sort(objects)
		return objects, account
	}
	plain, account := render("olm-v1")
	want := []string{"ClusterCatalog nginx-operator", "ClusterExtension nginx-operator", "Namespace nginx-operator-system"}
	if diff := cmp.Diff(want, plain); diff != "" || account != nil {
		t.Errorf("config/olm-v1 has the account %v: %s", account, diff)
	}

	before, account := render("olm-v1-before-1.11")
	added := map[string]bool{}
	for _, object := range before {
		added[object] = true
	}
	for _, object := range plain {
		if !added[object] {
			t.Errorf("config/olm-v1-before-1.11 does not have %s", object)
		}
		delete(added, object)
	}
	const installer = "nginx-operator-installer"
	want = []string{
		"ClusterRole " + installer, "ClusterRoleBinding " + installer,
		"Role " + installer, "RoleBinding " + installer, "ServiceAccount " + installer,
	}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(added))); diff != "" {
		t.Errorf("config/olm-v1-before-1.11 adds: %s", diff)
	}
	if diff := cmp.Diff(any(map[string]any{"name": installer}), account); diff != "" {
		t.Errorf("the account of the ClusterExtension: %s", diff)
	}
}
