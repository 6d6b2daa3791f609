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

// Types of the conditions of a StorageVersionMigration, the same in each of its APIs.
const (
	conditionRunning   = "Running"
	conditionSucceeded = "Succeeded"
	conditionFailed    = "Failed"
)

// generationAnnotation is on the StorageVersionMigration and has the generation of the CRD for which it was made.
// While the CRD still has that generation, what was migrated is what is stored.
const generationAnnotation = "operator.example.com/definition-generation"

const (
	// settleTime is how long a CRD must have been the same before the migration begins. Every API server has read
	// it by then, so none of several goes on to write the version before; and OLM has done its part of the upgrade.
	settleTime = 5 * time.Second
	// pruneTime is what the control plane gets to prune status.storedVersions after its migrator has finished.
	pruneTime = 10 * time.Second
	// unattendedAfter is how old a StorageVersionMigration may get without any condition: then nobody works on it.
	unattendedAfter = time.Minute
)

// situation is what a reconcile finds in the cluster.
type situation struct {
	// crd is as the API server has it now, settledFor how long its spec has been the same.
	crd        *apiextensionsv1.CustomResourceDefinition
	settledFor time.Duration
	// target is the version that this release wants to be stored.
	target string
	// migrator is the cluster's API of StorageVersionMigrations, migration is ours; nil where there is none.
	migrator  *schema.GroupVersionKind
	migration *migration
	// unverified: the migration was not seen to be over yet.
	unverified bool
}

// migration is a StorageVersionMigration.
type migration struct {
	object     *unstructured.Unstructured
	conditions []metav1.Condition
	// crd is the UID of the CRD that it was made for, generation the generation of that.
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

// message is what the migrator says about a condition.
func (m *migration) message(condition string) string {
	if found := meta.FindStatusCondition(m.conditions, condition); found != nil {
		return found.Message
	}
	return ""
}

// finishing reports whether the control plane is between the end of a migration and what it does to the CRD then.
func (m *migration) finishing(now time.Time) bool {
	for _, end := range []string{conditionSucceeded, conditionFailed} {
		if found := meta.FindStatusCondition(m.conditions, end); found != nil && found.Status == metav1.ConditionTrue {
			return m.is(conditionRunning) && now.Sub(found.LastTransitionTime.Time) < pruneTime
		}
	}
	return false
}

// storedVersion returns the version that a CRD stores.
func storedVersion(crd *apiextensionsv1.CustomResourceDefinition) string {
	for i := range crd.Spec.Versions {
		if crd.Spec.Versions[i].Storage {
			return crd.Spec.Versions[i].Name
		}
	}
	return ""
}

// pruned reports whether the CRD promises that all objects are stored in the target version.
func (s *situation) pruned() bool {
	return slices.Equal(s.crd.Status.StoredVersions, []string{s.target})
}

// action is what a reconcile does.
type action string

const (
	// actNothing: everything is stored in the version it should be, or the CRD is another release's.
	actNothing action = "nothing"
	// actSettle waits until the CRD has been the same for a while, actWait for the control plane.
	actSettle action = "settle"
	actWait   action = "wait"
	// actCreate makes the StorageVersionMigration, actDelete removes one that says nothing about what is stored now.
	actCreate action = "create"
	actDelete action = "delete"
	// actRewrite rewrites the objects ourselves and then prunes; actPrune only prunes.
	actRewrite action = "rewrite"
	actPrune   action = "prune"
	// actRestore takes back what the control plane pruned although objects may be stored in another version.
	actRestore action = "restore"
)

// decide returns what to do next. With decideOn it is the whole logic of the migration.
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

// decideOn returns what to do about a migration that is there.
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
		// Kubernetes 1.37: where a migration pruned before, the next one of the same CRD prunes as it begins.
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
		// It was pruned as it began, and the CRD changed after that.
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
