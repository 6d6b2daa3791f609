package access

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// api is an API server with one ConfigMap.
type api struct {
	mu sync.Mutex
	// denied are the denied verbs.
	denied   sets.Set[string]
	requests int
	watch    *watch.FakeWatcher
}

// deny makes verbs the denied ones.
func (a *api) deny(verbs ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.denied = sets.New(verbs...)
}

// received returns the number of requests until now.
func (a *api) received() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.requests
}

func (a *api) answer(verb string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.requests++
	if a.denied.Has(verb) {
		return apierrors.NewForbidden(corev1.Resource("configmaps"), "", errors.New("no binding"))
	}
	return nil
}

func (a *api) list(context.Context, metav1.ListOptions) (runtime.Object, error) {
	list := &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}
	list.Items = []corev1.ConfigMap{{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "page", ResourceVersion: "5"}}}
	return list, a.answer("list")
}

func (a *api) stream(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
	if ptr.Deref(options.SendInitialEvents, false) {
		return nil, errors.New("this server does not stream lists")
	}
	a.watch = watch.NewFake()
	return a.watch, a.answer("watch")
}

func (a *api) source() *cache.ListWatch {
	return &cache.ListWatch{ListWithContextFunc: a.list, WatchFuncWithContext: a.stream}
}

// world has a store that a reflector fills, and a guarded reconciler.
type world struct {
	*api
	*Namespaces
	store cache.Store
	guard reconcile.Reconciler
	logs  []string
	// unsettled is true if the store does not have the last list.
	unsettled atomic.Bool
	// inside is called in each reconcile.
	inside func(ctx context.Context)
}

func newWorld(t *testing.T, denied ...string) *world {
	t.Helper()
	w := &world{api: &api{}, store: cache.NewStore(cache.MetaNamespaceKeyFunc), inside: func(context.Context) {}}
	w.deny(denied...)
	w.Namespaces = New(funcr.New(func(_, args string) { w.logs = append(w.logs, args) }, funcr.Options{}), "bind a role")
	source := w.Add(w.source(), "a", "configmaps", func() bool { return !w.unsettled.Load() })
	w.guard = w.Guard(reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
		w.inside(ctx)
		return reconcile.Result{}, ctx.Err()
	}))
	ctx, cancel := context.WithCancel(t.Context())
	reflector := cache.NewReflectorWithOptions(source, &corev1.ConfigMap{}, w.store, cache.ReflectorOptions{})
	go reflector.RunWithContext(ctx)
	t.Cleanup(func() {
		cancel()
		synctest.Wait()
	})
	synctest.Wait()
	return w
}

// isDeferred reports whether a request of a namespace is deferred.
func (w *world) isDeferred(t *testing.T, namespace string) bool {
	t.Helper()
	ran := false
	w.inside = func(context.Context) { ran = true }
	result, err := w.guard.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: "web"}})
	if err != nil || ran != (result.RequeueAfter == 0) {
		t.Errorf("namespace %s: ran %t, %+v, %v", namespace, ran, result, err)
	}
	return !ran
}

// require requires the number of objects in the store, and whether the namespace is usable. The
// other namespace always is.
func (w *world) require(t *testing.T, objects int, usable bool) {
	t.Helper()
	synctest.Wait()
	if got := len(w.store.List()); got != objects {
		t.Errorf("%d objects are in the store, want %d", got, objects)
	}
	if w.Usable("a") != usable || w.isDeferred(t, "a") == usable {
		t.Errorf("usable is %t, want %t", w.Usable("a"), usable)
	}
	if !w.Usable("b") || w.isDeferred(t, "b") {
		t.Error("the other namespace is not usable")
	}
}

// TestMissingPermission verifies for each verb that a namespace without it is not reconciled and
// its store is synced, and that all is well within a minute after the permission exists.
func TestMissingPermission(t *testing.T) {
	for verb, objects := range map[string]int{"list": 0, "watch": 1} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, verb)
			w.require(t, objects, false)
			requests := w.received()
			time.Sleep(10 * time.Minute)
			w.require(t, objects, false)
			if sent := w.received() - requests; sent > 60 {
				t.Errorf("%s: %d requests in ten minutes", verb, sent)
			}
			w.deny()
			time.Sleep(time.Minute)
			w.require(t, 1, true)
			if len(w.logs) != 2 || !strings.Contains(w.logs[0], `"remedy"="bind a role"`) {
				t.Errorf("%s: logs %q", verb, w.logs)
			}
		})
	}
}

// TestLostPermission verifies that a lost permission ends the reconciles in progress, that a store
// whose list is denied becomes empty, and that all is well again after the permission exists.
func TestLostPermission(t *testing.T) {
	for verb, objects := range map[string]int{"list": 0, "watch": 1} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.require(t, 1, true)
			ended := make(chan reconcile.Result)
			w.inside = func(ctx context.Context) { <-ctx.Done() }
			go func() {
				result, err := w.guard.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "a", Name: "web"}})
				if err != nil {
					t.Error(err)
				}
				ended <- result
			}()
			synctest.Wait()

			w.deny(verb, "watch") // an expired watch lists again only if it cannot be repeated
			w.watch.Error(&metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonExpired, Code: 410})
			time.Sleep(time.Minute)
			if result := <-ended; result.RequeueAfter == 0 {
				t.Error("the ended reconcile is not repeated")
			}
			w.require(t, objects, false)

			w.deny()
			time.Sleep(time.Minute + 10*time.Second)
			w.require(t, 1, true)
		})
	}
}

// TestUnsettledStore verifies that a namespace that was denied is not usable before the store has
// the last list, and that a slow first list does not matter.
func TestUnsettledStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "list")
		w.unsettled.Store(true)
		w.deny()
		time.Sleep(time.Minute)
		w.require(t, 1, false)
		w.unsettled.Store(false)
		w.require(t, 1, true)
		w.unsettled.Store(true)
		w.require(t, 1, true)
	})
}

// TestAllNamespaces verifies that nothing is guarded if all namespaces are watched.
func TestAllNamespaces(t *testing.T) {
	var n *Namespaces
	inner := reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) { return reconcile.Result{}, nil })
	server := (&api{}).source()
	if n.Add(server, "", "pods", func() bool { return false }) != server || !n.Usable("a") {
		t.Error("a source is guarded")
	}
	if _, err := n.Guard(inner).Reconcile(t.Context(), reconcile.Request{}); err != nil {
		t.Error(err)
	}
}
