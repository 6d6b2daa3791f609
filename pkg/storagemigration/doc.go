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
