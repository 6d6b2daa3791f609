package access

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

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

// await waits until the list and the watch are permitted, or until the context ends. It returns an
// error after which a reflector lists again.
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

// probe lists one object, and starts and ends a watch.
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

// deny ends the reconciles in the namespace.
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

// permit records that a watch succeeded after a list.
func (s *source) permit() {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	if s.denied {
		s.denied = false
		s.of.log.Info("The missing permission is granted again", "namespace", s.namespace, "kind", s.kind)
	}
}
