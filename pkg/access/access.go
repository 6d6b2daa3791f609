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
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// probeInterval is the minimum time between two requests for a kind whose list or watch is
	// denied. The maximum is twice as long.
	probeInterval = 25 * time.Second
	// deferral is the minimum time for which a reconcile is deferred. The maximum is twice as long.
	deferral = 5 * time.Second
)

// errLost is the cause of the end of a reconcile in a namespace that has lost a permission.
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

// New returns Namespaces without sources. They log the remedy with each namespace that is not
// usable.
func New(log logr.Logger, remedy string) *Namespaces {
	return &Namespaces{
		log: log, remedy: remedy,
		sources: map[string][]*source{}, running: map[string]sets.Set[*context.CancelCauseFunc]{},
	}
}

// Usable reports whether the operator can list and watch all its kinds in a namespace, so that its
// objects can be reconciled.
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

// enter adds a reconcile, unless its namespace is not usable.
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

// spread returns a time between the minimum and twice the minimum.
func spread(minimum time.Duration) time.Duration {
	return minimum + rand.N(minimum) //nolint:gosec // a delay, not a secret
}
