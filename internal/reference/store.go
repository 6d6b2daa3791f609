package reference

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// store is a Tracker as the store of the reflector of a namespace, or of all namespaces if it is "".
type store struct {
	*Tracker
	namespace string
	// versions has the versions by the hash of namespace and name (hashOf). Tracker.mu guards it. A map
	// with the names takes five times the memory, and each garbage collection visits all of them. The
	// probability that two of a million objects have the same hash is 1 in 40 million.
	versions map[uint64]version
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

// current returns the version of an object, or noObject. The caller holds the lock.
func (s *store) current(key types.NamespacedName) version {
	if s == nil {
		return noObject
	}
	return s.versions[hashOf(key)]
}

// entry is an object of a list.
type entry struct {
	key     types.NamespacedName
	version version
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
		version: versionOf(accessor.GetResourceVersion()),
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
	hash := hashOf(found.key)
	differs := s.versions[hash] != found.version
	if differs {
		s.versions[hash] = found.version
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
	delete(s.versions, hashOf(found.key))
	s.forget(found.key, noObject)
	s.mu.Unlock()
	s.changed(found.key)
	return nil
}

// Replace implements cache.ReflectorStore. Of the first list, it reports only the objects that were
// read before in another version, because the controller reconciles every object at the start. Of the
// objects that a later list lacks, it reports only those with derived values: nobody uses the others.
func (s *store) Replace(objects []any, _ string) error {
	entries := make([]entry, len(objects))
	for i, object := range objects {
		var err error
		if entries[i], err = entryOf(object); err != nil {
			return err
		}
	}
	for _, key := range s.replace(entries) {
		s.changed(key)
	}
	return nil
}

// replace stores the versions, and returns the objects to report.
func (s *store) replace(entries []entry) []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, now := s.versions, make(map[uint64]version, len(entries))
	for _, found := range entries {
		now[hashOf(found.key)] = found.version
	}
	s.versions = now
	var differ []types.NamespacedName
	report := func(key types.NamespacedName) {
		s.forget(key, s.current(key))
		differ = append(differ, key)
	}
	if !s.isListed() {
		for key, version := range s.early {
			if s.covers(key.Namespace) {
				delete(s.early, key)
				if s.current(key) != version {
					report(key)
				}
			}
		}
		close(s.synced)
		return differ
	}
	for _, found := range entries {
		if before[hashOf(found.key)] != found.version {
			report(found.key)
		}
	}
	for key := range s.derived {
		if s.covers(key.Namespace) && s.current(key) == noObject {
			report(key)
		}
	}
	return differ
}

// Resync implements cache.ReflectorStore. It does nothing.
func (s *store) Resync() error { return nil }

// forget drops the derived values of an object, unless they are for this version already. The caller
// holds the lock.
func (s *store) forget(key types.NamespacedName, version version) {
	if known, found := s.derived[key]; found && known.version != version {
		delete(s.derived, key)
	}
	if s.recent.get(key, version) == nil {
		s.recent.forget(key)
	}
}
