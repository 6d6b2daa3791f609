package cached

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/codec"
)

func newObject(name string, observed int64) *v1alpha2.NginxOperator {
	object := &v1alpha2.NginxOperator{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Generation: 2}}
	object.Status.ObservedGeneration = observed
	return object
}

func TestStateOf(t *testing.T) {
	t.Parallel()
	expiry := metav1.Unix(1_800_000_000, 0)
	busy := newObject("busy", 1)
	busy.Status.Conditions = []metav1.Condition{{Type: v1alpha2.ConditionReady, Status: metav1.ConditionFalse}}
	busy.Status.BlockedBy = []v1alpha2.Blocker{
		{Reason: v1alpha2.ReasonRolledBack}, {Reason: v1alpha2.ReasonPaused}, {Reason: v1alpha2.ReasonRolledBack}, {Reason: "Unknown"},
	}
	busy.Status.Certificates = slices.Repeat([]v1alpha2.Certificate{{SecretName: "tls", NotAfter: expiry}}, maxCertificates+1)
	unreadable := newObject("unreadable", 1)
	codec.MarkUnreadable(unreadable, "a number")
	deleted := newObject("deleted", 1)
	deleted.DeletionTimestamp = &expiry
	down, scaledToZero, starting := newObject("down", 2), newObject("scaled-to-zero", 2), newObject("starting", 2)
	down.Status.LastGoodRevision, scaledToZero.Status.LastGoodRevision = &v1alpha2.GoodRevision{}, &v1alpha2.GoodRevision{}
	scaledToZero.Spec.Replicas = ptr.To[int32](0)
	serving := down.DeepCopy()
	serving.Name, serving.Status.ReadyReplicas = "serving", 1
	for _, test := range []struct {
		object *v1alpha2.NginxOperator
		want   State
	}{
		{newObject("done", 2), State{Ready: metav1.ConditionUnknown}},
		{busy, State{
			Ready: metav1.ConditionFalse, Waiting: true, Blocking: []string{v1alpha2.ReasonPaused, v1alpha2.ReasonRolledBack},
			Expiries: slices.Repeat([]time.Time{expiry.Time}, maxCertificates),
		}},
		{unreadable, State{Ready: metav1.ConditionUnknown, Unreadable: true}},
		{deleted, State{Ready: metav1.ConditionUnknown}},
		{down, State{Ready: metav1.ConditionUnknown, Down: true}},
		{scaledToZero, State{Ready: metav1.ConditionUnknown}},
		{starting, State{Ready: metav1.ConditionUnknown}},
		{serving, State{Ready: metav1.ConditionUnknown}},
	} {
		t.Run(test.object.Name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, StateOf(test.object)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
