package controller

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/examples/activity/api/v1"
)

// behind is a cache that has not seen the latest status of the Activity yet, or, without one, not the Activity itself.
type behind struct {
	client.Client
	activity *v1.Activity
}

func (b behind) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	if b.activity == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "activities"}, key.Name)
	}
	b.activity.DeepCopyInto(object.(*v1.Activity))
	return nil
}

// A new leader whose cache is behind runs nothing that has been run and whose Pod is gone, that was refused, or that is no
// longer there.
func TestCacheIsBehind(t *testing.T) {
	for name, meanwhile := range map[string]func(*world){
		"it was deleted while it ran": func(w *world) {
			w.passes(1)
			w.must(w.client.Delete(t.Context(), w.pod()))
		},
		"it ended": func(w *world) {
			w.passes(1)
			w.ends(corev1.PodSucceeded, 0)
			w.passes(1)
			w.must(w.client.Delete(t.Context(), w.pod()))
		},
		"it was refused": func(w *world) {
			w.failCreate = apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "p", nil)
			w.passes(1)
			w.failCreate = nil
		},
		"another one has its name": func(w *world) {
			other := newActivity()
			other.UID = "0002"
			w.must(w.client.Delete(t.Context(), newActivity()))
			w.must(w.client.Create(t.Context(), other))
		},
		"it is gone": func(w *world) { w.must(w.client.Delete(t.Context(), newActivity())) },
	} {
		w := newWorld(t, newActivity())
		old := newActivity()
		w.must(w.client.Get(t.Context(), client.ObjectKeyFromObject(old), old))
		meanwhile(w)
		made := w.made
		w.reconciler.Client = behind{w.client, old}
		w.must(w.pass())
		if w.made != made {
			t.Errorf("%s: a Pod was made", name)
		}
	}
}

// A Pod is no orphan because the cache has not seen its Activity yet.
func TestCacheHasNoActivity(t *testing.T) {
	w := newWorld(t, newActivity())
	w.failStatus = errKilled
	if err := w.pass(); !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	w.must(w.client.Delete(t.Context(), w.pod()))
	w.reconciler.Client = behind{w.client, nil}
	w.must(w.pass())
	if pod := w.pod(); pod == nil {
		t.Error("the Pod was let go before the status names it")
	}
}
