package world

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/example/nginx-operator/internal/objectcache"
)

// sortedInformer passes existing objects to a new handler in the order of their names, and
// registers the handlers of different kinds at different times. The informer of client-go has a
// random order, and a new leader registers the handlers of all kinds concurrently, so two runs of
// one seed would differ.
type sortedInformer struct {
	cache.SharedIndexInformer
	// delay is the time before the registration of a handler. No two kinds have the same.
	delay time.Duration
}

// sorted returns a constructor of informers with sorted initial objects.
func sorted(of objectcache.NewInformer) objectcache.NewInformer {
	return func(from cache.ListerWatcher, kind runtime.Object, resync time.Duration, indexers cache.Indexers) cache.SharedIndexInformer {
		return sortedInformer{of(from, kind, resync, indexers), delayOf(kind)}
	}
}

// delayOf returns a duration of less than a microsecond. It depends only on the kind.
func delayOf(kind runtime.Object) time.Duration {
	sum := fnv.New32a()
	_, _ = fmt.Fprintf(sum, "%T", kind)
	return time.Duration(sum.Sum32()%1000) * time.Nanosecond
}

// AddEventHandlerWithOptions implements cache.SharedInformer. No other goroutine runs, so no event
// occurs between the list and the registration.
func (s sortedInformer) AddEventHandlerWithOptions(
	handler cache.ResourceEventHandler, options cache.HandlerOptions,
) (cache.ResourceEventHandlerRegistration, error) {
	time.Sleep(s.delay)
	indexer := s.GetIndexer()
	keys := indexer.ListKeys()
	slices.SortFunc(keys, strings.Compare)
	for _, key := range keys {
		if object, found, err := indexer.GetByKey(key); err == nil && found {
			handler.OnAdd(object, true)
		}
	}
	return s.SharedIndexInformer.AddEventHandlerWithOptions(laterEvents{handler, len(keys) > 0}, options)
}

// laterEvents drops the initial objects of a handler that has received them already.
type laterEvents struct {
	cache.ResourceEventHandler
	drop bool
}

// OnAdd implements cache.ResourceEventHandler.
func (l laterEvents) OnAdd(object any, isInInitialList bool) {
	if !isInInitialList || !l.drop {
		l.ResourceEventHandler.OnAdd(object, isInInitialList)
	}
}
