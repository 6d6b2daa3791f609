package e2e

// An operator that watches some namespaces, installed with the overlay of docs/guide/operations.md.
//
//   - An instance of the watched namespace becomes Ready and serves.
//   - An object of another namespace is converted, and otherwise left alone.
//   - `kubectl auth can-i --list` has exactly the permissions of manager-cluster-role in the other
//     namespace, and those of manager-role as well in the watched one.

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/docs"
	"github.com/example/nginx-operator/test/harness"
)

func TestWatchNamespaces(t *testing.T) {
	startClean(t)
	suite.operatorNamespace = defaultNamespace
	watched, foreign := newNamespace(t, restricted), newNamespace(t, restricted)
	overlay := watchOverlay(t, watched)
	t.Cleanup(func() { removeOverlay(t, overlay, watched, foreign) })
	began := time.Now()
	kubectl(t, "apply", "--server-side", "-k", overlay)
	// clean deletes only namespaces with this label.
	kubectl(t, "label", "--overwrite", "namespace", defaultNamespace, testLabel+"="+madeByTests)
	kubectl(t, "rollout", "status", "-n", defaultNamespace, "--timeout=2m", "deployment/"+operatorName)

	stray := newObject(foreign, "web", 1)
	must(t, suite.admin.Create(t.Context(), stray))
	object := newInstance(t, watched, "web", 1)
	serviceServes(t, watched, "web", 8080)
	t.Logf("FIGURE operator for one namespace, until its first instance answers: %s", seconds(time.Since(began)))
	// The operator has reconciled a later change by then.
	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Replicas = new(int32) })
	waitForReady(t, object)

	port := kubectl(t, "get", "-n", foreign, "nginxoperators.v1alpha1.operator.example.com", "web", "-o", "jsonpath={.spec.port}")
	if port != "8080" {
		t.Errorf("the object elsewhere has port %q at v1alpha1", port)
	}
	must(t, suite.admin.Get(t.Context(), client.ObjectKeyFromObject(stray), stray))
	children, err := childrenOf(t.Context(), stray)
	must(t, err)
	if stray.Status.ObservedGeneration != 0 || len(stray.Status.Conditions) > 0 || len(children) > 0 {
		t.Errorf("the object elsewhere has children %v and status %+v", children, stray.Status)
	}
	holdsOnly(t, watched, foreign)
}

// watchOverlay writes the guide's overlay for a namespace and returns its directory.
func watchOverlay(t *testing.T, namespace string) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(suite.repository, "docs", "guide", "operations.md"))
	must(t, err)
	directory := harness.Must1(filepath.EvalSymlinks(t.TempDir()))(t)
	delivery := harness.Must1(filepath.Abs(suite.delivery))(t)
	text := strings.ReplaceAll(string(page), "team-a", namespace)
	must(t, docs.WriteOverlay(text, "Watch some namespaces", directory, delivery))
	return directory
}

// holdsOnly compares the permissions of the operator in two namespaces with its ClusterRoles. A
// ServiceAccount without any binding shows the permissions that every client has.
func holdsOnly(t *testing.T, watched, foreign string) {
	t.Helper()
	everybody := permissionsIn(t, "system:serviceaccount:"+foreign+":default", foreign)
	inForeign := permissionsIn(t, operatorUser(), foreign).Difference(everybody)
	inWatched := permissionsIn(t, operatorUser(), watched).Difference(everybody)
	clusterWide, namespaced := permissionsOf(t, packageName+"-manager-cluster-role"), permissionsOf(t, packageName+"-manager-role")
	for where, difference := range map[string]sets.Set[string]{
		"more in the other namespace":   inForeign.Difference(clusterWide),
		"less in the other namespace":   clusterWide.Difference(inForeign),
		"more in the watched namespace": inWatched.Difference(clusterWide.Union(namespaced)),
		"less in the watched namespace": clusterWide.Union(namespaced).Difference(inWatched),
		"of both roles":                 clusterWide.Intersection(namespaced),
	} {
		if len(difference) > 0 {
			t.Errorf("%s: %v", where, sets.List(difference))
		}
	}
	if len(clusterWide) < 10 || len(namespaced) < 50 {
		t.Errorf("the ClusterRoles have %d and %d permissions, that shows nothing", len(clusterWide), len(namespaced))
	}
}

var permissionRow = regexp.MustCompile(`(?m)^(\S+) +\[.*?\] +\[(.*?)\] +\[(.*?)\]$`)

// permissionsIn returns the permissions of a user in a namespace, each with its verb, resource, and
// the name of the object if it is for a single one.
func permissionsIn(t *testing.T, user, namespace string) sets.Set[string] {
	t.Helper()
	out := sets.New[string]()
	for _, row := range permissionRow.FindAllStringSubmatch(kubectl(t, "auth", "can-i", "--list", "-n", namespace, "--as="+user), -1) {
		addPermissions(out, row[1], strings.Fields(row[2]), strings.Fields(row[3]))
	}
	return out
}

// permissionsOf returns the permissions of a ClusterRole in the same form.
func permissionsOf(t *testing.T, name string) sets.Set[string] {
	t.Helper()
	role := &rbacv1.ClusterRole{}
	must(t, suite.admin.Get(t.Context(), client.ObjectKey{Name: name}, role))
	out := sets.New[string]()
	for _, rule := range role.Rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				resource, subresource, found := strings.Cut(resource, "/")
				if group != "" {
					resource += "." + group
				}
				if found {
					resource += "/" + subresource
				}
				addPermissions(out, resource, rule.ResourceNames, rule.Verbs)
			}
		}
	}
	return out
}

func addPermissions(to sets.Set[string], resource string, names, verbs []string) {
	if len(names) == 0 {
		names = []string{"*"}
	}
	for _, verb := range verbs {
		for _, name := range names {
			to.Insert(verb + " " + resource + " " + name)
		}
	}
}

// removeOverlay deletes the namespaces with their instances, and then the operator.
func removeOverlay(t *testing.T, overlay string, namespaces ...string) {
	t.Helper()
	defer func() { suite.operatorNamespace = "" }()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), installPatience)
	defer cancel()
	for _, namespace := range namespaces {
		if err := deleteNamespace(ctx, namespace); err != nil {
			t.Error(err)
		}
	}
	if _, err := command(ctx, "kubectl", "delete", "--ignore-not-found", "--wait", "-k", overlay); err != nil {
		t.Error(err)
	}
}
