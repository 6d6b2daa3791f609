// Package storagemigration migrates stored objects to the storage version of the CRD after an
// upgrade has changed it. The elected leader starts when the new CRD is in the cluster. If the
// cluster has a migrator (StorageVersionMigration, KEP-4192), the leader uses it. Otherwise it
// rewrites the objects itself. The migration is complete when status.storedVersions of the CRD
// lists the storage version only. The operator does not prune status.storedVersions while an object
// is stored in another version.
//
// Each reconcile evaluates the CRD and the StorageVersionMigration in the cluster, so another
// leader can continue at any point. For the reasons, see docs/adr/0015-storage-migration.md.
package storagemigration

// RBAC permissions that the other controllers do not need. Each names a single object, except for
// create, which RBAC cannot restrict by name.
//
// +kubebuilder:rbac:roleName=manager-cluster-role,groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get;list;watch,resourceNames=nginxoperators.operator.example.com
// +kubebuilder:rbac:roleName=manager-cluster-role,groups=apiextensions.k8s.io,resources=customresourcedefinitions/status,verbs=update,resourceNames=nginxoperators.operator.example.com
// +kubebuilder:rbac:roleName=manager-cluster-role,groups=storagemigration.k8s.io;migration.k8s.io,resources=storageversionmigrations,verbs=create
// +kubebuilder:rbac:roleName=manager-cluster-role,groups=storagemigration.k8s.io;migration.k8s.io,resources=storageversionmigrations,verbs=get;delete,resourceNames=nginxoperators.operator.example.com
// +kubebuilder:rbac:roleName=manager-cluster-role,groups=storagemigration.k8s.io,resources=storageversionmigrations,verbs=patch,resourceNames=nginxoperators.operator.example.com
