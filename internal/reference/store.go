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

// covers reports whether the store has the objects of a namespace.
func (s *store) covers(namespace string) bool {
	return s.namespace == metav1.NamespaceAll || s.namespace == namespace
}

// isListed reports whether the first list is complete. It is for a namespace without a store, whose
// objects do not exist for the tracker.
func (s *store) isListed() bool {
	if s == nil {
		return true
	}
	select {
	case <-s.synced:
		return true
	default:
		return false
	}
}

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

// Replace implements cache.ReflectorStore. Of the first list, it reports only the objects that were
// read before in another version, because the controller reconciles every object at the start.
func (s *store) Replace(objects []any, _ string) error {
	versions := map[string]map[string]string{}
	for _, object := range objects {
		found, err := entryOf(object)
		if err != nil {
			return err
		}
		put(versions, found)
	}
	for _, key := range s.replace(versions) {
		s.changed(key)
	}
	return nil
}

// replace stores the resourceVersions, and returns the objects to report.
func (s *store) replace(versions map[string]map[string]string) []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.versions
	if s.namespace == metav1.NamespaceAll {
		s.versions = versions
	} else {
		before = map[string]map[string]string{s.namespace: s.versions[s.namespace]}
		delete(s.versions, s.namespace)
		maps.Copy(s.versions, versions)
	}
	var differ, early []types.NamespacedName
	eachDifference(before, versions, func(key types.NamespacedName, version string) {
		s.forget(key, version)
		differ = append(differ, key)
	})
	if s.isListed() {
		return differ
	}
	for key, version := range s.early {
		if s.covers(key.Namespace) {
			delete(s.early, key)
			if now := versions[key.Namespace][key.Name]; now != version {
				s.forget(key, now)
				early = append(early, key)
			}
		}
	}
	close(s.synced)
	return early
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
