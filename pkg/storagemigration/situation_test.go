package storagemigration

import (
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

const (
	older   = "v1alpha1"
	newer   = "v1alpha2"
	theUID  = types.UID("a CRD")
	theTime = "2026-11-21T12:00:00Z"
)

// crdOf returns a CRD of generation 7 with a storage version, and with stored in
// status.storedVersions.
func crdOf(stores string, stored ...string) *apiextensionsv1.CustomResourceDefinition {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.UID, crd.Generation = theUID, 7
	for _, name := range []string{newer, older} {
		crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: name, Served: true, Storage: name == stores,
		})
	}
	crd.Status.StoredVersions = stored
	return crd
}

// migrationOf returns a StorageVersionMigration for a generation of the CRD, with an age, and with
// conditions that have been True for a second.
func migrationOf(generation string, age time.Duration, conditions ...string) *migration {
	now, _ := time.Parse(time.RFC3339, theTime)
	object := &unstructured.Unstructured{}
	object.SetCreationTimestamp(metav1.NewTime(now.Add(-age)))
	object.SetAnnotations(map[string]string{generationAnnotation: generation})
	object.SetOwnerReferences([]metav1.OwnerReference{{UID: theUID}})
	var list []any
	for _, name := range conditions {
		list = append(list, map[string]any{"type": name, "status": "True", "lastTransitionTime": now.Add(-time.Second).Format(time.RFC3339)})
	}
	object.Object["status"] = map[string]any{"conditions": list}
	m, err := newMigration(object)
	if err != nil {
		panic(err)
	}
	return m
}

// TestNudgesLeaveTimeToEnd verifies that the intervals increase, so that a long migration can end
// within one of them. Another migration starts with the first interval.
func TestNudgesLeaveTimeToEnd(t *testing.T) {
	var n nudges
	now := time.Now()
	for i, want := range []time.Duration{5 * time.Second, 10 * time.Second, 20 * time.Second, 40 * time.Second} {
		if !n.due("a", now) {
			t.Fatalf("nudge %d is not due", i)
		}
		n.done(now)
		if n.due("a", now.Add(want-time.Millisecond)) || !n.due("a", now.Add(want)) {
			t.Errorf("after nudge %d the next is due after %s, want %s", i, n.pause, want)
		}
		now = now.Add(want)
	}
	if n.done(now); !n.due("b", now) || n.pause != 0 {
		t.Error("another migration waits for the first one")
	}
}

func TestDecide(t *testing.T) {
	now, err := time.Parse(time.RFC3339, theTime)
	if err != nil {
		t.Fatal(err)
	}
	ended := func(generation string, conditions ...string) *migration {
		return migrationOf(generation, time.Minute, conditions...)
	}
	finishing, failing := ended("7", conditionRunning, conditionSucceeded), ended("7", conditionRunning, conditionFailed)
	others := ended("7", conditionSucceeded)
	others.crd = "another CRD"
	unpruned := ended("7", conditionRunning, conditionSucceeded)
	for i := range unpruned.conditions {
		unpruned.conditions[i].LastTransitionTime = metav1.NewTime(now.Add(-pruneTime))
	}
	going := migrationOf("7", time.Second, conditionRunning)
	gone := metav1.NewTime(now)
	going.object.SetDeletionTimestamp(&gone)

	mixed, pruned := crdOf(newer, older, newer), crdOf(newer, newer)
	for name, test := range map[string]struct {
		situation situation
		want      action
	}{
		"the release before's CRD":   {situation{crd: crdOf(older, older), settledFor: time.Hour}, actNothing},
		"all stored as it should be": {situation{crd: pruned}, actNothing},
		"flipped just now":           {situation{crd: mixed, migrator: &apis[0]}, actSettle},
		"flipped and settled":        {situation{crd: mixed, settledFor: settleTime, migrator: &apis[0]}, actCreate},
		"there is no migrator":       {situation{crd: mixed, settledFor: settleTime}, actRewrite},
		"succeeded, pruned as it began, the CRD changed": {
			situation{crd: pruned, migration: ended("6", conditionSucceeded), unverified: true}, actRestore,
		},
		"succeeded and pruned, just now": {
			situation{crd: pruned, migration: ended("7", conditionSucceeded), unverified: true}, actNothing,
		},
	} {
		test.situation.target = newer
		if got := decide(&test.situation, now); got != test.want {
			t.Errorf("%s: %s instead of %s", name, got, test.want)
		}
	}
	for name, test := range map[string]struct {
		crd       *apiextensionsv1.CustomResourceDefinition
		migration *migration
		want      action
	}{
		"not seen by the control plane yet":         {mixed, migrationOf("7", time.Second), actWait},
		"nobody works on it":                        {mixed, migrationOf("7", 2*unattendedAfter), actRewrite},
		"running for long":                          {mixed, migrationOf("7", time.Hour, conditionRunning), actWait},
		"about to be deleted":                       {mixed, going, actWait},
		"succeeded, about to be pruned":             {mixed, finishing, actWait},
		"succeeded, never pruned, the same CRD":     {mixed, unpruned, actPrune},
		"succeeded, nobody prunes here":             {mixed, ended("7", conditionSucceeded), actPrune},
		"succeeded, the CRD changed":                {mixed, ended("6", conditionSucceeded), actDelete},
		"succeeded and pruned":                      {pruned, ended("6", conditionSucceeded), actNothing},
		"pruned as it began":                        {pruned, migrationOf("7", time.Second, conditionRunning), actRestore},
		"of a CRD that was deleted":                 {mixed, others, actDelete},
		"failed, about to be pruned":                {mixed, failing, actWait},
		"failed and pruned":                         {pruned, ended("7", conditionFailed), actRestore},
		"failed":                                    {mixed, ended("7", conditionFailed), actRewrite},
		"went back to the version before meanwhile": {crdOf(older, newer, older), ended("6", conditionSucceeded), actNothing},
	} {
		got := decide(&situation{crd: test.crd, target: newer, migration: test.migration}, now)
		if got != test.want {
			t.Errorf("%s: %s instead of %s", name, got, test.want)
		}
	}
}

// TestNothingIsPrunedWhileAnythingIsLeft verifies that the old version is not pruned before all
// objects are migrated. A version that was pruned too early is restored.
func TestNothingIsPrunedWhileAnythingIsLeft(t *testing.T) {
	for _, conditions := range [][]string{nil, {conditionRunning}, {conditionFailed}, {conditionRunning, conditionFailed}} {
		for _, generation := range []string{"6", "7"} {
			s := situation{crd: crdOf(newer, older, newer), target: newer, migration: migrationOf(generation, time.Hour, conditions...)}
			if got := decide(&s, time.Now()); got == actPrune || got == actNothing {
				t.Errorf("%v of generation %s: %s", conditions, generation, got)
			}
			s.crd = crdOf(newer, newer)
			if got := decide(&s, time.Now()); len(conditions) > 0 && got != actRestore {
				t.Errorf("pruned, with %v of generation %s: %s", conditions, generation, got)
			}
		}
	}
}
