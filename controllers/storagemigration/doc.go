// Package storagemigration moves stored objects to the version of the API that the CRD stores, after an upgrade has
// changed it. The elected leader does it, once the new CRD is in the cluster: with the control plane's migrator where
// there is one (StorageVersionMigration, KEP-4192), else by rewriting the objects itself. It is over when
// status.storedVersions of the CRD names the stored version alone, which nothing does while an object is left in
// another one.
//
// Every reconcile starts from the CRD and the StorageVersionMigration in the cluster, so it does not matter who began,
// or was killed on the way. docs/adr/0015-storage-migration.md has the reasons.
package storagemigration

// RBAC permissions beyond those of the other controllers, by name where that is possible (create knows no names).
//
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get;list;watch,resourceNames=nginxoperators.operator.example.com
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions/status,verbs=update,resourceNames=nginxoperators.operator.example.com
// +kubebuilder:rbac:groups=storagemigration.k8s.io;migration.k8s.io,resources=storageversionmigrations,verbs=create
// +kubebuilder:rbac:groups=storagemigration.k8s.io;migration.k8s.io,resources=storageversionmigrations,verbs=get;delete,resourceNames=nginxoperators.operator.example.com
// +kubebuilder:rbac:groups=storagemigration.k8s.io,resources=storageversionmigrations,verbs=patch,resourceNames=nginxoperators.operator.example.com
