package integration

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/example/nginx-operator/test/harness/apiserver"
)

// TestUsedRights checks that the manager was denied no permission, except for the one that a test
// removed, and that it has used every verb of its roles. It runs last because of its file name.
func TestUsedRights(t *testing.T) {
	used := sets.New[string]()
	for _, request := range audit(t, func(apiserver.Request) bool { return true }) {
		// A client that watches also lists: before Kubernetes 1.34, watched objects are listed
		// first.
		used.Insert(request.Permission(), strings.Replace(request.Permission(), "watch ", "list ", 1))
		// TestActivityKilledBeforeTheRecord takes this permission away.
		if request.Forbidden() && request.Permission() != "patch ego.example.com/activities/status" {
			t.Errorf("refused: %s", request.Permission())
		}
	}
	// These requests are not in the audit log. OwnerReferencesPermissionEnforcement requires the
	// first two, a repeated Event the third, and an expiring certificate the fourth.
	used.Insert("update ego.example.com/activities/finalizers", "update example.com/myapps/finalizers",
		"patch events.k8s.io/events", "update /secrets")
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
