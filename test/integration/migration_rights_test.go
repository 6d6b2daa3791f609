package integration

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
)

// The rights that a migration takes, and those that it takes where kube-storage-version-migrator is installed.
var (
	migrationRights = []string{
		"create storagemigration.k8s.io/storageversionmigrations", "get storagemigration.k8s.io/storageversionmigrations",
		"patch storagemigration.k8s.io/storageversionmigrations", "delete storagemigration.k8s.io/storageversionmigrations",
		"update apiextensions.k8s.io/customresourcedefinitions/status",
	}
	kubeMigratorRights = []string{"create migration.k8s.io/storageversionmigrations", "get migration.k8s.io/storageversionmigrations"}
)

// hasUsed requires that the operator has used rights.
func (m *migration) hasUsed(t *testing.T, rights []string) {
	t.Helper()
	used := sets.New[string]()
	for _, entry := range auditOf(t, m.auditLog) {
		used.Insert(entry.right())
	}
	for _, right := range rights {
		if !used.Has(right) {
			t.Errorf("granted and never used: %s", right)
		}
	}
}
