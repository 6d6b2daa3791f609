package reference

import (
	"context"
	"fmt"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type derived struct {
	resourceVersion string
	values          map[string]any
}

// maxValues bounds the values of an object. At the bound, all of them are dropped.
const maxValues = 256

// Derive returns the value that a function derives from the content of an object, and whether the
// object exists. The cache key distinguishes several values of the same object. Derive reads the
// object into the argument if there is no cached value for the key and the current resourceVersion.
// The value must be small and without key material, because it is cached until the object changes.
func Derive[T any](ctx context.Context, t *Tracker, cacheKey string, object client.Object, derive func() T) (T, bool, error) {
	var none T
	key := client.ObjectKeyFromObject(object)
	version, isKnown := t.current(key)
	switch {
	case !isKnown:
		found, err := t.Read(ctx, object)
		if err != nil || !found {
			return none, false, err
		}
		version = object.GetResourceVersion() // "" for an object of a plan
	case version == "":
		return none, false, nil
	}

	if known, found := t.known(key, version, cacheKey); found {
		return known.(T), true, nil
	}

	// Concurrent calls with the same key share one derivation.
	concluded, err, _ := t.flights.Do(flight(key, version, cacheKey), func() (any, error) {
		if known, found := t.known(key, version, cacheKey); found {
			return known, nil
		}

		if isKnown {
			if found, err := t.Read(ctx, object); err != nil || !found {
				return nil, err
			}
		}

		value := derive()
		t.remember(key, object.GetResourceVersion(), cacheKey, value)
		return value, nil
	})
	if err != nil || concluded == nil {
		return none, false, err
	}

	return concluded.(T), true, nil
}

// readTimeout bounds a read, because other callers can wait for it as well.
const readTimeout = 30 * time.Second

// Read reads an object from the API server, and reports whether it exists. Readers of the same
// resourceVersion share the result, so no caller may change it.
func (t *Tracker) Read(ctx context.Context, object client.Object) (bool, error) {
	key := client.ObjectKeyFromObject(object)
	// An earlier read could return an older version.
	version, isKnown := t.current(key)
	if !isKnown && len(t.informers) > 0 {
		t.noteEarly(key) // before the read, so that a list that it precedes reports it
	}
	if kept := t.recent.get(key, version); kept != nil {
		reflect.ValueOf(object).Elem().Set(reflect.ValueOf(kept).Elem())
		return true, nil
	}

	shared, err, _ := t.flights.Do(flight(key, version, "read"), func() (any, error) {
		// A canceled caller must not cancel the read for the others.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout)
		defer cancel()
		err := t.reader.Get(ctx, key, object)
		if err == nil {
			t.recent.put(object.DeepCopyObject().(client.Object))
		}
		return object, err
	})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("failed to read %s %q: %w", t.resource.Resource, key.Name, err)
	}
	if shared != any(object) {
		reflect.ValueOf(object).Elem().Set(reflect.ValueOf(shared).Elem())
	}

	return true, nil
}

// flight returns a key. Names contain no slash, and the cache key comes last.
func flight(key types.NamespacedName, version, cacheKey string) string {
	return fmt.Sprintf("%s/%s/%s", key, version, cacheKey)
}

func (t *Tracker) known(key types.NamespacedName, version, cacheKey string) (any, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	known := t.derived[key]
	if known.resourceVersion != version {
		return nil, false
	}

	value, found := known.values[cacheKey]
	return value, found
}

func (t *Tracker) remember(key types.NamespacedName, version, cacheKey string, value any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	// A deleted object has no later event that would drop its values.
	if current, isKnown := t.current(key); len(t.informers) == 0 || isKnown && current == "" {
		return
	}

	known := t.derived[key]
	if known.resourceVersion != version || len(known.values) >= maxValues {
		known = derived{resourceVersion: version, values: map[string]any{}}
	}

	known.values[cacheKey] = value
	t.derived[key] = known
}

// forget drops what was derived from another version of an object than the current one.
func (t *Tracker) forget(key types.NamespacedName) {
	version, _ := t.current(key)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.derived[key].resourceVersion != version {
		delete(t.derived, key)
	}

	t.recent.forget(key, version)
}
