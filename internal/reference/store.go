package reference

import (
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// store is a Tracker as the store of the reflector of a namespace, or of all namespaces if it is "".
type store struct {
	*Tracker
	namespace string
	// synced is closed after the first list.
	synced chan struct{}
}

var _ cache.TransformingStore = &store{}

// entry is the stored part of an object.
type entry struct {
	key     types.NamespacedName
	version string
}

// Transformer makes the reflector store entries instead of complete metadata while a streamed list
// is incomplete.
func (s *store) Transformer() cache.TransformFunc {
	return func(object any) (any, error) { return entryOf(object) }
}

func entryOf(object any) (entry, error) {
	if found, ok := object.(entry); ok {
		return found, nil
	}
	accessor, err := meta.Accessor(object)
	if err != nil {
		return entry{}, fmt.Errorf("failed to read the metadata of a %T: %w", object, err)
	}
	return entry{
		key:     types.NamespacedName{Namespace: accessor.GetNamespace(), Name: accessor.GetName()},
		version: accessor.GetResourceVersion(),
	}, nil
}

// Add implements cache.ReflectorStore.
func (s *store) Add(object any) error { return s.Update(object) }

// Update implements cache.ReflectorStore.
func (s *store) Update(object any) error {
	found, err := entryOf(object)
	if err != nil {
		return err
	}
	s.mu.Lock()
	differs := s.versions[found.key.Namespace][found.key.Name] != found.version
	if differs {
		put(s.versions, found)
		s.forget(found.key, found.version)
	}
	s.mu.Unlock()
	if differs {
		s.changed(found.key)
	}
	return nil
}

// Delete implements cache.ReflectorStore.
func (s *store) Delete(object any) error {
	found, err := entryOf(object)
	if err != nil {
		return err
	}
	s.mu.Lock()
	delete(s.versions[found.key.Namespace], found.key.Name)
	if len(s.versions[found.key.Namespace]) == 0 {
		delete(s.versions, found.key.Namespace)
	}
	delete(s.derived, found.key)
	s.mu.Unlock()
	s.recent.forget(found.key)
	s.changed(found.key)
	return nil
}

// Replace implements cache.ReflectorStore. It does not report the objects of the first list,
// because the controller reconciles every object at the start.
func (s *store) Replace(objects []any, _ string) error {
	versions := map[string]map[string]string{}
	for _, object := range objects {
		found, err := entryOf(object)
		if err != nil {
			return err
		}
		put(versions, found)
	}
	s.mu.Lock()
	before := s.versions
	if s.namespace == metav1.NamespaceAll {
		s.versions = versions
	} else {
		before = map[string]map[string]string{s.namespace: s.versions[s.namespace]}
		delete(s.versions, s.namespace)
		maps.Copy(s.versions, versions)
	}
	var differ []types.NamespacedName
	eachDifference(before, versions, func(key types.NamespacedName, version string) {
		s.forget(key, version)
		differ = append(differ, key)
	})
	s.mu.Unlock()
	select {
	case <-s.synced:
		for _, key := range differ {
			s.changed(key)
		}
	default:
		close(s.synced)
	}
	return nil
}

// Resync implements cache.ReflectorStore. It does nothing.
func (s *store) Resync() error { return nil }

// forget drops the derived values of an object, unless they are for this resourceVersion already.
// The caller holds the lock.
func (s *store) forget(key types.NamespacedName, version string) {
	if known, found := s.derived[key]; found && known.version != version {
		delete(s.derived, key)
	}
	if s.recent.get(key, version) == nil {
		s.recent.forget(key)
	}
}

func put(versions map[string]map[string]string, found entry) {
	if versions[found.key.Namespace] == nil {
		versions[found.key.Namespace] = map[string]string{}
	}
	versions[found.key.Namespace][found.key.Name] = found.version
}

// eachDifference calls the function for every object whose resourceVersions in the two maps differ,
// with the new resourceVersion, or "" if the object is gone.
func eachDifference(before, now map[string]map[string]string, do func(types.NamespacedName, string)) {
	for namespace, names := range before {
		for name := range names {
			if _, found := now[namespace][name]; !found {
				do(types.NamespacedName{Namespace: namespace, Name: name}, "")
			}
		}
	}
	for namespace, names := range now {
		for name, version := range names {
			if before[namespace][name] != version {
				do(types.NamespacedName{Namespace: namespace, Name: name}, version)
			}
		}
	}
}
