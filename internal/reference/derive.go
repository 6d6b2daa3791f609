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

// derived are the conclusions from an object in one resourceVersion.
type derived struct {
	version string
	values  map[string]any
}

// maxValues bounds what is remembered of one object that many name. Beyond it, what was known is concluded anew.
const maxValues = 256

// Derive returns what the function concludes from the content of an object, and whether the object exists. The question
// tells conclusions about the same object apart. An object is read, into the one that is passed, only if the question
// was not asked yet about its current resourceVersion. Whoever passes a function must see to it that a conclusion is small
// and holds no key material: it is remembered as long as the object does not change.
func Derive[T any](ctx context.Context, t *Tracker, question string, object client.Object, conclude func() T) (T, bool, error) {
	var none T
	if t.direct {
		if found, err := t.Read(ctx, object); err != nil || !found {
			return none, false, err
		}
		return conclude(), true, nil
	}
	key := client.ObjectKeyFromObject(object)
	version, found := t.Version(key)
	if !found {
		return none, false, nil
	}
	if known, found := t.known(key, version, question); found {
		return known.(T), true, nil
	}
	// Whoever asks the same at the same time gets the same answer.
	concluded, err, _ := t.flights.Do(flight(key, version, question), func() (any, error) {
		if known, found := t.known(key, version, question); found {
			return known, nil
		}
		found, err := t.Read(ctx, object)
		if err != nil || !found {
			return nil, err
		}
		value := conclude()
		t.remember(key, object.GetResourceVersion(), question, value)
		return value, nil
	})
	if err != nil || concluded == nil {
		return none, false, err
	}
	return concluded.(T), true, nil
}

// readTimeout bounds a read, which others may wait for as well.
const readTimeout = 30 * time.Second

// Read reads the object of this name from the API server, and reports whether it exists. Those who read it at the same time share one
// read and what it returned, and so do those who read a ConfigMap in the same resourceVersion later, so nobody may change that.
func (t *Tracker) Read(ctx context.Context, object client.Object) (bool, error) {
	key := client.ObjectKeyFromObject(object)
	// A read that began before the current resourceVersion was known could return an older one.
	version, _ := t.Version(key)
	if kept := t.recent.get(key, version); kept != nil {
		reflect.ValueOf(object).Elem().Set(reflect.ValueOf(kept).Elem())
		return true, nil
	}
	shared, err, _ := t.flights.Do(flight(key, version, "read"), func() (any, error) {
		// One who gives up must not take the others along.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout)
		defer cancel()
		err := t.reader.Get(ctx, key, object)
		if err == nil {
			t.recent.put(key, object.DeepCopyObject().(client.Object))
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

// flight tells apart what is asked at the same time. Names hold no slash, and questions come last.
func flight(key types.NamespacedName, version, question string) string {
	return key.String() + "/" + version + "/" + question
}

func (t *Tracker) known(key types.NamespacedName, version, question string) (any, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	known := t.derived[key]
	if known.version != version {
		return nil, false
	}
	value, found := known.values[question]
	return value, found
}

func (t *Tracker) remember(key types.NamespacedName, version, question string, value any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, exists := t.versions[key.Namespace][key.Name]; !exists {
		return
	}
	known := t.derived[key]
	if known.version != version || len(known.values) >= maxValues {
		known = derived{version: version, values: map[string]any{}}
	}
	known.values[question] = value
	t.derived[key] = known
}
