package migration

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/example/nginx-operator/test/harness"
	"github.com/example/nginx-operator/test/harness/apiserver"
)

// hasUsed requires that the operator has used each of these RBAC permissions.
func (m *migration) hasUsed(t *testing.T, permissions []string) {
	t.Helper()
	used := sets.New[string]()
	for _, request := range harness.Must1(apiserver.ReadAudit(m.AuditLog))(t) {
		used.Insert(request.Permission())
	}
	for _, permission := range permissions {
		if !used.Has(permission) {
			t.Errorf("granted and never used: %s", permission)
		}
	}
}
