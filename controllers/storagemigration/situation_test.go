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
	theUID  = types.UID("a definition")
	theTime = "2026-11-21T12:00:00Z"
)

// definitionOf returns a definition of generation 7 that stores a version and has stored others.
func definitionOf(stores string, stored ...string) *apiextensionsv1.CustomResourceDefinition {
	definition := &apiextensionsv1.CustomResourceDefinition{}
	definition.UID, definition.Generation = theUID, 7
	for _, name := range []string{newer, older} {
		definition.Spec.Versions = append(definition.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: name, Served: true, Storage: name == stores,
		})
	}
	definition.Status.StoredVersions = stored
	return definition
}

// migrationOf returns a StorageVersionMigration that was made for a generation of the definition, so long ago, with
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

func TestDecide(t *testing.T) {
	now, err := time.Parse(time.RFC3339, theTime)
	if err != nil {
		t.Fatal(err)
	}
	finishing := migrationOf("7", time.Minute, conditionRunning, conditionSucceeded)
	failing := migrationOf("7", time.Minute, conditionRunning, conditionFailed)
	others := migrationOf("7", time.Minute, conditionSucceeded)
	others.definition = "another definition"
	going := migrationOf("7", time.Second, conditionRunning)
	gone := metav1.NewTime(now)
	going.object.SetDeletionTimestamp(&gone)

	for name, test := range map[string]struct {
		situation situation
		later     time.Duration
		want      action
	}{
		"the release before's definition": {situation: situation{definition: definitionOf(older, older), settledFor: time.Hour}, want: actNothing},
		"all stored as it should be":      {situation: situation{definition: definitionOf(newer, newer)}, want: actNothing},
		"flipped just now":                {situation: situation{definition: definitionOf(newer, older, newer), migrator: &apis[0]}, want: actSettle},
		"flipped and settled":             {situation: situation{definition: definitionOf(newer, older, newer), settledFor: settleTime, migrator: &apis[0]}, want: actCreate},
		"there is no migrator":            {situation: situation{definition: definitionOf(newer, older, newer), settledFor: settleTime}, want: actRewrite},
		"not seen by the control plane yet": {situation: situation{definition: definitionOf(newer, older, newer), migration: migrationOf("7", time.Second)},
			want: actWait},
		"nobody works on it": {situation: situation{definition: definitionOf(newer, older, newer), migration: migrationOf("7", 2*unattendedAfter)},
			want: actRewrite},
		"running for long": {situation: situation{definition: definitionOf(newer, older, newer), migration: migrationOf("7", time.Hour, conditionRunning)},
			want: actWait},
		"about to be deleted": {situation: situation{definition: definitionOf(newer, older, newer), migration: going}, want: actWait},
		"succeeded, about to be pruned": {situation: situation{definition: definitionOf(newer, older, newer), migration: finishing},
			want: actWait},
		"succeeded, never pruned, the same definition": {situation: situation{definition: definitionOf(newer, older, newer), migration: finishing},
			later: pruneTime, want: actPrune},
		"succeeded, nobody prunes here": {situation: situation{definition: definitionOf(newer, older, newer), migration: migrationOf("7", time.Minute, conditionSucceeded)},
			want: actPrune},
		"succeeded, the definition changed": {situation: situation{definition: definitionOf(newer, older, newer), migration: migrationOf("6", time.Minute, conditionSucceeded)},
			want: actDelete},
		"succeeded and pruned": {situation: situation{definition: definitionOf(newer, newer), migration: migrationOf("6", time.Minute, conditionSucceeded)},
			want: actNothing},
		"succeeded, pruned as it began, the definition changed": {situation: situation{definition: definitionOf(newer, newer), unverified: true,
			migration: migrationOf("6", time.Minute, conditionSucceeded)}, want: actRestore},
		"succeeded and pruned, just now": {situation: situation{definition: definitionOf(newer, newer), unverified: true,
			migration: migrationOf("7", time.Minute, conditionSucceeded)}, want: actNothing},
		"pruned as it began":               {situation: situation{definition: definitionOf(newer, newer), migration: migrationOf("7", time.Second, conditionRunning)}, want: actRestore},
		"of a definition that was deleted": {situation: situation{definition: definitionOf(newer, older, newer), migration: others}, want: actDelete},
		"failed, about to be pruned":       {situation: situation{definition: definitionOf(newer, older, newer), migration: failing}, want: actWait},
		"failed and pruned": {situation: situation{definition: definitionOf(newer, newer), migration: migrationOf("7", time.Minute, conditionFailed)},
			want: actRestore},
		"failed": {situation: situation{definition: definitionOf(newer, older, newer), migration: migrationOf("7", time.Minute, conditionFailed)},
			want: actRewrite},
		"went back to the version before meanwhile": {situation: situation{definition: definitionOf(older, newer, older), migration: migrationOf("6", time.Minute, conditionSucceeded)},
			want: actNothing},
	} {
		t.Run(name, func(t *testing.T) {
			test.situation.target = newer
			if got := decide(&test.situation, now.Add(test.later)); got != test.want {
				t.Errorf("%s instead of %s", got, test.want)
			}
		})
	}
}

// What is pruned too early must be put back without losing the version that is stored.
func TestNothingIsPrunedWhileAnythingIsLeft(t *testing.T) {
	for _, conditions := range [][]string{nil, {conditionRunning}, {conditionFailed}, {conditionRunning, conditionFailed}} {
		for _, generation := range []string{"6", "7"} {
			s := situation{definition: definitionOf(newer, older, newer), target: newer, migration: migrationOf(generation, time.Hour, conditions...)}
			if got := decide(&s, time.Now()); got == actPrune || got == actNothing {
				t.Errorf("%v of generation %s: %s", conditions, generation, got)
			}
			s.definition = definitionOf(newer, newer)
			if got := decide(&s, time.Now()); len(conditions) > 0 && got != actRestore {
				t.Errorf("pruned, with %v of generation %s: %s", conditions, generation, got)
			}
		}
	}
}
