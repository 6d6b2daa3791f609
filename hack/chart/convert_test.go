package main

import (
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// bindings has the bindings of three roles. Only the first one is for watched namespaces.
const bindings = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: nginx-operator-manager-rolebinding}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: nginx-operator-manager-role}
subjects:
- {kind: ServiceAccount, name: nginx-operator-controller-manager, namespace: nginx-operator-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: nginx-operator-manager-cluster-rolebinding}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: nginx-operator-manager-cluster-role}
subjects:
- {kind: ServiceAccount, name: nginx-operator-controller-manager, namespace: nginx-operator-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: nginx-operator-manager-rolebinding, namespace: nginx-operator-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: nginx-operator-manager-role}
subjects:
- {kind: ServiceAccount, name: nginx-operator-controller-manager, namespace: nginx-operator-system}
`

// resources returns the objects of a text as kustomize reads them.
func resources(t *testing.T, text string) []*resource.Resource {
	t.Helper()
	fs := filesys.MakeFsInMemory()
	must(t, fs.WriteFile("kustomization.yaml", []byte("resources: [objects.yaml]\n")))
	must(t, fs.WriteFile("objects.yaml", []byte(text)))
	rendered, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(fs, ".")
	must(t, err)
	return rendered.Resources()
}

func TestConvertBindings(t *testing.T) {
	templates := map[string]string{}
	for _, object := range resources(t, bindings) {
		text, err := convert(object)
		must(t, err)
		templates[object.GetKind()+" "+object.GetName()] = text
	}
	for name, test := range map[string]struct {
		ranges, clusterBindings, bindings int
	}{
		"ClusterRoleBinding nginx-operator-manager-rolebinding":         {ranges: 1, clusterBindings: 1, bindings: 1},
		"ClusterRoleBinding nginx-operator-manager-cluster-rolebinding": {clusterBindings: 1},
		"RoleBinding nginx-operator-manager-rolebinding":                {bindings: 1},
	} {
		text := templates[name]
		for part, want := range map[string]int{
			"range .Values.watchNamespaces": test.ranges, "kind: ClusterRoleBinding\n": test.clusterBindings, "kind: RoleBinding\n": test.bindings,
		} {
			if got := strings.Count(text, part); got != want {
				t.Errorf("%s has %q %d times, want %d:\n%s", name, part, got, want, text)
			}
		}
	}
}

// TestNamespaceInText verifies that the generator refuses the namespace of config/ within a text,
// which it cannot replace.
func TestNamespaceInText(t *testing.T) {
	for _, object := range resources(t, `
apiVersion: v1
kind: ConfigMap
metadata: {name: web}
data: {url: web.nginx-operator-system.svc}
`) {
		if text, err := convert(object); err == nil || !strings.Contains(err.Error(), configNamespace) {
			t.Errorf("got %v:\n%s", err, text)
		}
	}
}
