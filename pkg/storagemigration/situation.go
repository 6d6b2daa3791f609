package storagemigration

import (
	"fmt"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Condition types of a StorageVersionMigration, the same in each of its APIs.
const (
	conditionRunning   = "Running"
	conditionSucceeded = "Succeeded"
	conditionFailed    = "Failed"
)

// generationAnnotation is on the StorageVersionMigration, with the generation of the CRD for which
// it was created. While the CRD has that generation, the result applies to its storage version.
const generationAnnotation = "operator.example.com/definition-generation"

const (
	// settleTime is how long a CRD must be unchanged before the migration starts. By then, no API
	// server writes the previous version, and OLM has completed its part of the upgrade.
	settleTime = 5 * time.Second
	// pruneTime is the time for the control plane to prune status.storedVersions at the end.
	pruneTime = 10 * time.Second
	// unattendedAfter is the age from which no migrator processes an object without conditions.
	unattendedAfter = time.Minute
)

type situation struct {
	// crd is the CRD in the API server. settledFor is how long its spec has been unchanged.
	crd        *apiextensionsv1.CustomResourceDefinition
	settledFor time.Duration
	// target is the storage version of this release.
	target string
	// migrator is the cluster's API of StorageVersionMigrations, and migration the operator's
	// object in it. Each is nil if it does not exist or is not needed.
	migrator  *schema.GroupVersionKind
	migration *migration
	// unverified is true if this process has seen an incomplete migration, but not its end.
	unverified bool
}

type migration struct {
	object     *unstructured.Unstructured
	conditions []metav1.Condition
	// crd and generation are the UID and the generation of the CRD for which it was created.
	crd        types.UID
	generation string
}

func newMigration(object *unstructured.Unstructured) (*migration, error) {
	var typed struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}

	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &typed); err != nil {
		return nil, fmt.Errorf("failed to read %s %s: %w", object.GetKind(), object.GetName(), err)
	}

	m := &migration{object: object, conditions: typed.Status.Conditions, generation: object.GetAnnotations()[generationAnnotation]}
	if owners := object.GetOwnerReferences(); len(owners) > 0 {
		m.crd = owners[0].UID
	}
	return m, nil
}

func (m *migration) is(condition string) bool {
	return meta.IsStatusConditionTrue(m.conditions, condition)
}

func (m *migration) message(condition string) string {
	if found := meta.FindStatusCondition(m.conditions, condition); found != nil {
		return found.Message
	}
	return ""
}

// finishing reports whether the migration has ended, but the control plane may still write the CRD.
func (m *migration) finishing(now time.Time) bool {
	for _, end := range []string{conditionSucceeded, conditionFailed} {
		if found := meta.FindStatusCondition(m.conditions, end); found != nil && found.Status == metav1.ConditionTrue {
			return m.is(conditionRunning) && now.Sub(found.LastTransitionTime.Time) < pruneTime
		}
	}
	return false
}

func storedVersion(crd *apiextensionsv1.CustomResourceDefinition) string {
	for i := range crd.Spec.Versions {
		if crd.Spec.Versions[i].Storage {
			return crd.Spec.Versions[i].Name
		}
	}
	return ""
}

// pruned reports whether status.storedVersions lists the target version only.
func (s *situation) pruned() bool {
	return slices.Equal(s.crd.Status.StoredVersions, []string{s.target})
}

type action string

const (
	// actNothing is for a complete migration, and for the CRD of another release.
	actNothing action = "nothing"
	// actSettle waits until the CRD is unchanged, and actWait for the control plane.
	actSettle action = "settle"
	actWait   action = "wait"
	// actCreate creates the StorageVersionMigration, and actDelete deletes an old one.
	actCreate action = "create"
	actDelete action = "delete"
	// actRewrite rewrites the objects and then prunes status.storedVersions. actPrune only prunes.
	actRewrite action = "rewrite"
	actPrune   action = "prune"
	// actRestore adds versions that the control plane pruned too early.
	actRestore action = "restore"
)

// decide returns the next action. decide and decideOn contain the whole logic of the migration.
func decide(s *situation, now time.Time) action {
	switch {
	case storedVersion(s.crd) != s.target:
		return actNothing
	case s.migration != nil:
		return decideOn(s.migration, s, now)
	case s.pruned():
		return actNothing
	case s.settledFor < settleTime:
		return actSettle
	case s.migrator != nil:
		return actCreate
	}
	return actRewrite
}

func decideOn(m *migration, s *situation, now time.Time) action {
	switch {
	case m.object.GetDeletionTimestamp() != nil || m.finishing(now):
		return actWait
	case m.crd != "" && m.crd != s.crd.UID:
		return actDelete
	case m.is(conditionFailed) && s.pruned():
		return actRestore
	case m.is(conditionFailed):
		return actRewrite
	case m.is(conditionSucceeded):
		return decideOnSucceeded(m, s)
	case s.pruned():
		// Kubernetes 1.37 prunes at the start if an earlier migration of the same CRD pruned.
		return actRestore
	case len(m.conditions) == 0 && now.Sub(m.object.GetCreationTimestamp().Time) > unattendedAfter:
		return actRewrite
	}
	return actWait
}

func decideOnSucceeded(m *migration, s *situation) action {
	same := m.generation == generationOf(s.crd)
	switch {
	case s.pruned() && !same && s.unverified:
		// The control plane pruned at the start, and the CRD has changed since then.
		return actRestore
	case s.pruned():
		return actNothing
	case same:
		return actPrune
	}
	return actDelete
}

func generationOf(crd *apiextensionsv1.CustomResourceDefinition) string {
	return fmt.Sprint(crd.Generation)
}
