package migration

import (
	"context"
	"errors"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/test/harness"
)

// kubeMigratorCRD is the part of kube-storage-version-migrator's CRD that the tests need.
const kubeMigratorCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: storageversionmigrations.migration.k8s.io
  annotations: {api-approved.kubernetes.io: https://github.com/kubernetes/enhancements/pull/747}
spec:
  group: migration.k8s.io
  scope: Cluster
  names:
    plural: storageversionmigrations
    singular: storageversionmigration
    kind: StorageVersionMigration
    listKind: StorageVersionMigrationList
  versions:
  - name: v1alpha1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [resource]
            properties:
              resource: {type: object, properties: {group: {type: string}, version: {type: string}, resource: {type: string}}}
          status:
            type: object
            properties:
              conditions:
                type: array
                items:
                  type: object
                  required: [type, status]
                  properties:
                    type: {type: string}
                    status: {type: string}
                    reason: {type: string}
                    message: {type: string}
                    lastUpdateTime: {type: string, format: date-time}
`

// testMigrationByKubeMigrator simulates kube-storage-version-migrator, which rewrites objects but
// does not prune status.storedVersions. No other test in this package simulates a component.
func testMigrationByKubeMigrator(t *testing.T, m *migration) {
	crd := &unstructured.Unstructured{}
	harness.Must(t, yaml.Unmarshal([]byte(kubeMigratorCRD), &crd.Object))
	harness.Must(t, m.admin.Create(t.Context(), crd))
	before := m.flip(t)
	var svm *unstructured.Unstructured
	await(t, func() error {
		if svm = m.svm(t, ofKubeMigrator); svm == nil {
			return errors.New("there is no StorageVersionMigration")
		}
		return nil
	})
	resource, _, err := unstructured.NestedStringMap(svm.Object, "spec", "resource")
	harness.Must(t, err)
	want := map[string]string{"group": "operator.example.com", "version": "v1alpha2", "resource": "nginxoperators"}
	if diff := gocmp.Diff(want, resource); diff != "" {
		t.Errorf("the migrator is asked for another resource (-want +got):\n%s", diff)
	}
	m.setKubeMigration(t, svm, "Running")
	harness.Must(t, harness.InParallel(t.Context(), writers, migrated, func(ctx context.Context, i int) error {
		return m.touch(ctx, storedNamespace+"/"+storedName(i))
	}))
	harness.Must(t, errors.Join(m.allStored(t, "v1alpha2"), m.storedVersions(t, "v1alpha1", "v1alpha2")))
	m.setKubeMigration(t, svm, "Succeeded")
	m.migrate(t, before)
	harness.Must(t, m.admin.Delete(t.Context(), crd))
	await(t, func() error {
		if m.svm(t, ofKubeMigrator) != nil {
			return errors.New("the API of the migrator is still there")
		}
		return nil
	})
}

// setKubeMigration writes the only condition that the migrator sets on its object.
func (m *migration) setKubeMigration(t *testing.T, svm *unstructured.Unstructured, condition string) {
	t.Helper()
	harness.Must(t, m.admin.Get(t.Context(), client.ObjectKeyFromObject(svm), svm))
	harness.Must(t, unstructured.SetNestedSlice(svm.Object, []any{
		map[string]any{"type": condition, "status": "True", "lastUpdateTime": time.Now().UTC().Format(time.RFC3339)},
	}, "status", "conditions"))
	harness.Must(t, m.admin.Status().Update(t.Context(), svm))
}
