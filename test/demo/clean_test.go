package main

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
)

// What a cluster has after a demo, beside what others have there.
const (
	ownCluster = `
apiVersion: v1
kind: Namespace
metadata: {name: nginx-operator-system, labels: {operator.example.com/made-by: demo}}
---
apiVersion: v1
kind: Namespace
metadata: {name: nginx-demo, labels: {operator.example.com/made-by: demo}}
---
apiVersion: v1
kind: Namespace
metadata: {name: e2e, labels: {operator.example.com/made-by: e2e}}
---
apiVersion: v1
kind: Namespace
metadata: {name: somebody}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: nginxoperators.operator.example.com}
spec:
  versions:
  - {name: v1alpha1, served: true, storage: false}
  - {name: v1alpha2, served: true, storage: true}
status: {storedVersions: [v1alpha1, v1alpha2]}
---
apiVersion: storagemigration.k8s.io/v1
kind: StorageVersionMigration
metadata: {name: nginxoperators.operator.example.com}
status: {conditions: [{type: Running, status: "True"}]}
---
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: nginx-operator.v0.3.0, namespace: nginx-operator-system}
status: {phase: Succeeded}
---
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: nginx-operator.v0.1.0, namespace: somebody}
status: {phase: Succeeded}
---
apiVersion: operators.coreos.com/v2
kind: OperatorCondition
metadata: {name: nginx-operator.v0.3.0, namespace: nginx-operator-system}
spec: {conditions: [{type: Upgradeable, status: "False"}]}
---
apiVersion: operator.example.com/v1alpha2
kind: NginxOperator
metadata: {name: web, namespace: nginx-demo}
`
	foreignInstance = `---
apiVersion: operator.example.com/v1alpha2
kind: NginxOperator
metadata: {name: shop, namespace: somebody}
`
	foreignNamespace = `---
apiVersion: v1
kind: Namespace
metadata: {name: nginx-upgrade}
`
)

// on returns an upgrade on a cluster in memory with these objects.
func on(t *testing.T, manifest string) *upgrade {
	t.Helper()
	objects := decode(t, manifest)
	out := make([]runtime.Object, 0, len(objects))
	for i := range objects {
		out = append(out, &objects[i])
	}
	return &upgrade{api: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		namespaceKind: "NamespaceList", crdKind: "CustomResourceDefinitionList", migrationKind: "StorageVersionMigrationList",
		releaseKind: "ClusterServiceVersionList", subscribedKind: "SubscriptionList", conditionKind: "OperatorConditionList",
		instanceKind.WithVersion(finalAPI): "NginxOperatorList",
	}, out...)}
}

// Only what the demo made may go.
func TestOwnNamespaces(t *testing.T) {
	ours, err := on(t, ownCluster).ownNamespaces(t.Context())
	slices.Sort(ours)
	if err != nil || !slices.Equal(ours, []string{"nginx-demo", "nginx-operator-system"}) {
		t.Errorf("%v, %v", ours, err)
	}
}

func TestRefuseOthers(t *testing.T) {
	for name, test := range map[string]struct{ manifest, want string }{
		"the demo's":        {ownCluster, ""},
		"another instance":  {ownCluster + foreignInstance, "NginxOperator shop is in namespace somebody"},
		"another namespace": {ownCluster + foreignNamespace, "namespace nginx-upgrade is not the demo's"},
		"another operator": {
			strings.Replace(ownCluster, "made-by: demo", "made-by: hand", 1),
			"namespace nginx-operator-system is not the demo's",
		},
		"no API": {foreignInstance, ""},
	} {
		t.Run(name, func(t *testing.T) {
			u := on(t, test.manifest)
			ours, err := u.ownNamespaces(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			err = u.refuseOthers(t.Context(), ours)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

// All that is the demo's goes, and nothing else; where there is nothing, nothing fails.
func TestRemoveAll(t *testing.T) {
	u := on(t, ownCluster)
	ours, err := u.ownNamespaces(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := u.cleaned(t.Context()); err == nil || !strings.Contains(err.Error(), "nginx-demo") ||
		!strings.Contains(err.Error(), "CustomResourceDefinition") || !strings.Contains(err.Error(), "StorageVersionMigration") {
		t.Errorf("clean before the start: %v", err)
	}
	for range 2 {
		if err := u.removeAll(t.Context(), ours); err != nil {
			t.Fatal(err)
		}
	}
	if err := u.cleaned(t.Context()); err != nil {
		t.Error(err)
	}
	namespaces, err := u.api.Resource(namespaceKind).List(t.Context(), listAll)
	if err != nil || len(namespaces.Items) != 2 {
		t.Errorf("%d namespaces are left, %v", len(namespaces.Items), err)
	}
}

func TestLook(t *testing.T) {
	s, err := on(t, ownCluster).look(t.Context())
	want := []string{"0.3.0 Succeeded", "v1alpha1 v1alpha2*", "v1alpha1 v1alpha2", "Running", "False"}
	if err != nil || !slices.Equal(s.cells(), want) {
		t.Errorf("%q, %v; want %q", s.cells(), err, want)
	}
	s, err = on(t, "").look(t.Context())
	want = []string{"none", "none", "none", "none", "unknown"}
	if err != nil || !slices.Equal(s.cells(), want) {
		t.Errorf("on an empty cluster: %q, %v; want %q", s.cells(), err, want)
	}
}
