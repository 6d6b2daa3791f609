package integration

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// TestUsedRights runs last, by the name of its file. The manager was refused nothing that no test took from it, and has used every verb that its roles
// grant.
func TestUsedRights(t *testing.T) {
	used := sets.New[string]()
	for _, entry := range audit(t, "", "") {
		resource := entry.ObjectRef.Resource
		if entry.ObjectRef.Subresource != "" {
			resource += "/" + entry.ObjectRef.Subresource
		}
		used.Insert(entry.Verb + " " + entry.ObjectRef.APIGroup + "/" + resource)
		// Those of withoutRights, and of TestActivityForbidden.
		if entry.Response.Code == 403 && !slices.Contains([]string{"patch activities/status", "create pods"}, entry.Verb+" "+resource) {
			t.Errorf("refused: %s %s", entry.Verb, resource)
		}
	}
	// Rights that the audit log does not show: admission asks for the first two on the manager's behalf
	// (OwnerReferencesPermissionEnforcement), the third is for an Event that repeats within minutes, the fourth for a
	// certificate that ends, and an API server that cannot stream a list (before Kubernetes 1.34) is asked to list what is
	// watched.
	used.Insert("update ego.example.com/activities/finalizers", "update example.com/myapps/finalizers",
		"patch events.k8s.io/events", "update /secrets")
	for grant := range used {
		if watched, found := strings.CutPrefix(grant, "watch "); found {
			used.Insert("list " + watched)
		}
	}
	cluster := read(t, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: operatorName + "-manager-role"}})
	local := read(t, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: operatorName + "-manager-role"}})
	for _, rule := range slices.Concat(cluster.Rules, local.Rules) {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					if grant := verb + " " + group + "/" + resource; !used.Has(grant) {
						t.Errorf("granted and never used: %s", grant)
					}
				}
			}
		}
	}
}
