package census

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	fcache "k8s.io/client-go/tools/cache/testing"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/bounds"
)

func newObject(namespace, name string, generation, observed int64) *v1alpha2.NginxOperator {
	object := &v1alpha2.NginxOperator{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Generation: generation}}
	object.Status.ObservedGeneration = observed
	return object
}

func TestEntryOf(t *testing.T) {
	t.Parallel()
	expiry := metav1.Unix(1_800_000_000, 0)
	busy := newObject("shop", "busy", 2, 1)
	busy.Status.Conditions = []metav1.Condition{{Type: v1alpha2.ConditionReady, Status: metav1.ConditionFalse}}
	busy.Status.BlockedBy = []v1alpha2.Blocker{
		{Reason: v1alpha2.ReasonRolledBack}, {Reason: v1alpha2.ReasonPaused}, {Reason: v1alpha2.ReasonRolledBack}, {Reason: "Unknown"},
	}
	busy.Status.Certificates = slices.Repeat([]v1alpha2.Certificate{{SecretName: "tls", NotAfter: expiry}}, maxCertificates+1)
	unreadable := newObject("shop", "unreadable", 2, 1)
	bounds.MarkUnreadable(unreadable, "a number")
	deleted := newObject("shop", "deleted", 2, 1)
	deleted.DeletionTimestamp = &expiry
	for _, test := range []struct {
		object *v1alpha2.NginxOperator
		want   Entry
	}{
		{newObject("shop", "done", 2, 2), Entry{Ready: metav1.ConditionUnknown}},
		{busy, Entry{
			Ready: metav1.ConditionFalse, Waiting: true, Blocking: []string{v1alpha2.ReasonPaused, v1alpha2.ReasonRolledBack},
			Expiries: slices.Repeat([]time.Time{expiry.Time}, maxCertificates),
		}},
		{unreadable, Entry{Ready: metav1.ConditionUnknown, Unreadable: true}},
		{deleted, Entry{Ready: metav1.ConditionUnknown}},
	} {
		t.Run(test.object.Name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, entryOf(test.object)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestCensusFollowsItsInformers verifies that the census is complete only with the objects of the
// informers of all namespaces, and that it follows their changes.
func TestCensusFollowsItsInformers(t *testing.T) {
	t.Parallel()
	all := New("bank", "shop")
	var sources []*fcache.FakeControllerSource
	for _, namespace := range []string{"shop", "bank"} {
		if all.Synced() {
			t.Fatalf("complete before the informer of %s", namespace)
		}
		source := fcache.NewFakeControllerSource()
		t.Cleanup(source.Shutdown)
		source.Add(newObject(namespace, "b", 2, 1))
		source.Add(newObject(namespace, "a", 1, 1))
		sources = append(sources, source)
		informer := toolscache.NewSharedIndexInformer(source, &v1alpha2.NginxOperator{}, 0, nil)
		if err := all.Follow(informer); err != nil {
			t.Fatal(err)
		}
		if all.Synced() {
			t.Fatalf("complete before the list of %s", namespace)
		}
		go informer.RunWithContext(t.Context())
		if !all.Wait(t.Context()) {
			t.Fatalf("the informer of %s has no list", namespace)
		}
	}
	if !all.Synced() {
		t.Error("not complete after both lists")
	}
	requireNames(t, all, 2, "bank/a", "bank/b", "shop/a", "shop/b")

	sources[0].Modify(newObject("shop", "a", 2, 1))
	requireNames(t, all, 3, "bank/a", "bank/b", "shop/a", "shop/b")
	sources[0].Delete(newObject("shop", "b", 2, 1))
	requireNames(t, all, 2, "bank/a", "bank/b", "shop/a")
	all.OnDelete(toolscache.DeletedFinalStateUnknown{Key: "bank/b"})
	requireNames(t, all, 1, "bank/a", "shop/a")
	if entries := all.Entries(); len(entries) != 2 {
		t.Errorf("entries %+v", entries)
	}
}

// requireNames waits until the census has these objects, and this many of them wait.
func requireNames(t *testing.T, all *Census, waiting int, want ...string) {
	t.Helper()
	var got string
	for range 1000 {
		names := all.Names()
		if got = fmt.Sprint(all.Waiting(), names); got == fmt.Sprint(waiting, want) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%s, want %d %v", got, waiting, want)
}

// TestWaitEnds verifies that a wait ends with its context.
func TestWaitEnds(t *testing.T) {
	t.Parallel()
	all := New()
	informer := toolscache.NewSharedIndexInformer(fcache.NewFakeControllerSource(), &v1alpha2.NginxOperator{}, 0, nil)
	if err := all.Follow(informer); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if all.Wait(ended) {
		t.Error("an informer that does not run has all objects")
	}
	if names := all.Names(); !slices.Equal(names, []types.NamespacedName{}) {
		t.Errorf("names %v", names)
	}
}
