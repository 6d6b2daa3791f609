// Package access keeps the operator working in all other watched namespaces while it lacks a
// permission in one of them.
//
// A cache waits for the first list of each kind in each namespace. Therefore a list that is denied
// is an empty list here, and no object of its namespace is reconciled until all lists and watches of
// the namespace are permitted again. For the reasons, see docs/adr/0047-watch-namespaces.md.
package access

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// probeInterval is the minimum time between two denied requests. The maximum is twice as long.
	probeInterval = 25 * time.Second
	// deferral is the minimum time for which a reconcile is deferred. The maximum is twice as long.
	deferral = 5 * time.Second
)

var errLost = errors.New("a permission in the namespace is missing")

// Namespaces knows in which watched namespaces a permission is missing. Create it with New. A nil
// pointer is for an operator that watches all namespaces: its ClusterRoleBinding belongs to the
// administrator of the cluster.
type Namespaces struct {
	log    logr.Logger
	remedy string

	mu sync.Mutex
	// sources has the sources of each namespace.
	sources map[string][]*source
	// running has the reconciles of each namespace.
	running map[string]sets.Set[*context.CancelCauseFunc]
}

// New returns Namespaces that log the remedy with each namespace that is not usable.
func New(log logr.Logger, remedy string) *Namespaces {
	return &Namespaces{
		log: log, remedy: remedy,
		sources: map[string][]*source{}, running: map[string]sets.Set[*context.CancelCauseFunc]{},
	}
}

// Usable reports whether all kinds can be listed and watched in a namespace.
func (n *Namespaces) Usable(namespace string) bool {
	if n == nil {
		return true
	}

	n.mu.Lock()
	defer n.mu.Unlock()
	return n.usable(namespace)
}

// usable is Usable. The caller holds the lock.
func (n *Namespaces) usable(namespace string) bool {
	return !slices.ContainsFunc(n.sources[namespace], func(s *source) bool { return !s.usable() })
}

// Guard returns a reconciler that defers the requests of namespaces that are not usable. A
// reconcile in progress ends, because its reads can be incomplete.
func (n *Namespaces) Guard(inner reconcile.Reconciler) reconcile.Reconciler {
	if n == nil {
		return inner
	}
	return reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		if !n.enter(request.Namespace, &cancel) {
			return reconcile.Result{RequeueAfter: spread(deferral)}, nil
		}

		defer n.leave(request.Namespace, &cancel)
		result, err := inner.Reconcile(ctx, request)
		if errors.Is(context.Cause(ctx), errLost) {
			return reconcile.Result{RequeueAfter: spread(deferral)}, nil
		}

		return result, err
	})
}

func (n *Namespaces) enter(namespace string, cancel *context.CancelCauseFunc) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.usable(namespace) {
		return false
	}
	if n.running[namespace] == nil {
		n.running[namespace] = sets.Set[*context.CancelCauseFunc]{}
	}

	n.running[namespace].Insert(cancel)
	return true
}

func (n *Namespaces) leave(namespace string, cancel *context.CancelCauseFunc) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.running[namespace].Delete(cancel)
}

func spread(minimum time.Duration) time.Duration {
	return minimum + rand.N(minimum) //nolint:gosec // a delay, not a secret
}

// source lists and watches a kind in a namespace. If the list is denied, it is empty. If the list
// or the watch is denied, the watch ends when both are permitted again, and the reflector then
// lists again.
type source struct {
	inner *cache.ListWatch
	// settled reports whether the store has the last list.
	settled         func() bool
	of              *Namespaces
	namespace, kind string
	// denied is true from the first denied request until a watch succeeds, and settling until the
	// store has the list of that time. of.mu guards both.
	denied, settling bool
	// emptied is true if the last list was denied. Only the goroutine of the reflector uses it.
	emptied bool
}

// Add adds a source of a kind in a namespace, and returns it, or the inner source if n is nil.
// settled reports whether the store has the last list.
func (n *Namespaces) Add(inner *cache.ListWatch, namespace, kind string, settled func() bool) *cache.ListWatch {
	if n == nil {
		return inner
	}

	s := &source{inner: inner, of: n, namespace: namespace, kind: kind, settled: settled}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.sources[namespace] = append(n.sources[namespace], s)
	return &cache.ListWatch{ListWithContextFunc: s.list, WatchFuncWithContext: s.watch}
}

func (s *source) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	list, err := s.inner.ListWithContext(ctx, options)
	s.emptied = apierrors.IsForbidden(err)
	if s.emptied {
		s.deny("list", err) // ends the reconciles before the store is empty
		return &internalversion.List{}, nil
	}

	return list, err
}

func (s *source) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	streamsList := ptr.Deref(options.SendInitialEvents, false)
	if streamsList && s.isDenied() {
		// After an ordinary list, the store is filled before the watch.
		return nil, errLost
	}

	if !s.emptied {
		events, err := s.inner.WatchWithContext(ctx, options)
		if err == nil {
			s.permit()
			return events, nil
		}
		if !apierrors.IsForbidden(err) {
			return nil, err
		}

		s.deny("watch", err)
		if streamsList {
			return nil, err // the reflector lists instead
		}
	}

	return nil, s.await(ctx)
}

// await waits for the permissions, or the end of the context. The reflector then lists again.
func (s *source) await(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
		case <-time.After(spread(probeInterval)):
		}
		if ctx.Err() != nil || s.probe(ctx) == nil {
			return apierrors.NewResourceExpired("the permissions have changed")
		}
	}
}

func (s *source) probe(ctx context.Context) error {
	list, err := s.inner.ListWithContext(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return err
	}

	accessor, err := meta.ListAccessor(list)
	if err != nil {
		return fmt.Errorf("failed to read a list: %w", err)
	}

	options := metav1.ListOptions{ResourceVersion: accessor.GetResourceVersion(), TimeoutSeconds: ptr.To[int64](1)}
	events, err := s.inner.WatchWithContext(ctx, options)
	if err != nil {
		return err
	}

	events.Stop()
	return nil
}

// usable reports whether the store has the objects of the kind. The caller holds the lock.
func (s *source) usable() bool {
	s.settling = s.settling && (s.denied || !s.settled())
	return !s.settling
}

func (s *source) isDenied() bool {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	return s.denied
}

func (s *source) deny(verb string, err error) {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	if s.denied {
		return
	}

	s.denied, s.settling = true, true
	for cancel := range s.of.running[s.namespace] {
		(*cancel)(errLost)
	}

	s.of.log.Info("Missing a permission, so no instance of this namespace is reconciled",
		"namespace", s.namespace, "verb", verb, "kind", s.kind, "error", err.Error(), "remedy", s.of.remedy)
}

func (s *source) permit() {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	if s.denied {
		s.denied = false
		s.of.log.Info("The missing permission is granted again", "namespace", s.namespace, "kind", s.kind)
	}
}
