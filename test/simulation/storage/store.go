package storage

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Key identifies an object.
type Key struct {
	Resource        *Resource
	Namespace, Name string
}

func (k Key) String() string { return fmt.Sprintf("%s %s/%s", k.Resource.Name(), k.Namespace, k.Name) }

// Version is an object at one resource version. It is immutable.
type Version struct {
	Key
	Revision int64
	// At is the time of the write.
	At time.Time
	// Object is the object. If Deleted is set, it is the last state before the deletion.
	Object map[string]any
	// Raw is the encoded object.
	Raw     []byte
	Deleted bool
	// Requested is true if a client requested the write, and false if a user or a controller of the
	// model wrote.
	Requested bool

	decoded client.Object
}

// Meta returns the metadata of the object.
func (v *Version) Meta() metav1.Object { return &unstructured.Unstructured{Object: v.Object} }

// Typed is the pointer of a type of objects.
type Typed[T any] interface {
	*T
	client.Object
}

// As decodes the object. It decodes each version once, because the controllers of the model read it
// at every tick.
func As[T any, P Typed[T]](v *Version) P {
	decoded, isDecoded := v.decoded.(P)
	if !isDecoded {
		decoded = new(T)
		if err := json.Unmarshal(v.Raw, decoded); err != nil {
			panic(err) // the model encoded it before
		}
		v.decoded = decoded
	}
	return decoded.DeepCopyObject().(P)
}

// Store stores the objects. Only one goroutine may use it at a time.
type Store struct {
	// Skew is the time by which the clock of the API server is ahead of the operator's.
	Skew time.Duration
	// Admit, if set, is the admission policy for the requests of clients. It gets the object before
	// and after the write: before is nil for a creation, and after is nil for a deletion.
	Admit func(of *Resource, before, after map[string]any) error

	// dryRun is true during a request that stores nothing. requested is true during any request.
	dryRun    bool
	requested bool
	revision  int64
	uids      int
	addresses int
	log       []*Version
	live      map[Key]*Version
}

// New returns an empty Store.
func New() *Store { return &Store{revision: 1, live: map[Key]*Version{}} }

// Load stores objects as an earlier simulation stored them, at new resource versions. They have
// their apiVersion and kind.
func (s *Store) Load(objects []map[string]any) {
	for _, object := range objects {
		read := &unstructured.Unstructured{Object: object}
		of := OfKind(read.GetKind())
		var number int
		if _, err := fmt.Sscanf(string(read.GetUID()), uidFormat, &number); err == nil {
			s.uids = max(s.uids, number)
		}
		s.addresses++
		s.put(Key{of, read.GetNamespace(), read.GetName()}, object, false)
	}
}

// Revision returns the resource version of the newest write.
func (s *Store) Revision() int64 { return s.revision }

// Get returns an object, or nil if it does not exist.
func (s *Store) Get(key Key) *Version { return s.live[key] }

// List returns the objects of a kind, sorted by namespace and name. If namespace is "", it returns
// the objects of all namespaces.
func (s *Store) List(of *Resource, namespace string) []*Version {
	var out []*Version
	for key, found := range s.live {
		if key.Resource == of && (namespace == "" || key.Namespace == namespace) {
			out = append(out, found)
		}
	}
	slices.SortFunc(out, byName)
	return out
}

// ListAt returns the objects that List returned at an earlier resource version.
func (s *Store) ListAt(of *Resource, namespace string, revision int64) []*Version {
	newest := map[Key]*Version{}
	for _, version := range s.log {
		if version.Revision > revision {
			break
		}
		if version.Resource == of && (namespace == "" || version.Namespace == namespace) {
			newest[version.Key] = version
		}
	}
	var out []*Version
	for _, version := range newest {
		if !version.Deleted {
			out = append(out, version)
		}
	}
	slices.SortFunc(out, byName)
	return out
}

func byName(a, b *Version) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// Since returns the versions of all kinds after a resource version.
func (s *Store) Since(revision int64) []*Version {
	at, _ := slices.BinarySearchFunc(s.log, revision+1, func(v *Version, r int64) int { return cmp.Compare(v.Revision, r) })
	return s.log[at:]
}

// before returns the last version of an object before a resource version, or nil.
func (s *Store) before(key Key, revision int64) *Version {
	for _, version := range slices.Backward(s.log) {
		if version.Key == key && version.Revision < revision {
			return version
		}
	}
	return nil
}

// admit returns the error with which the admission policy denies a write.
func (s *Store) admit(of *Resource, before, after map[string]any) error {
	if s.Admit == nil || !s.requested {
		return nil
	}
	return s.Admit(of, before, after)
}

// Serves reports whether a kind is served. An optional kind is served while its
// CustomResourceDefinition exists.
func (s *Store) Serves(of *Resource) bool {
	return !of.Optional || s.Get(Key{CustomResourceDefs, "", of.Name()}) != nil
}

// put stores an object at a new resource version. In a dry run, it only returns the object.
func (s *Store) put(key Key, object map[string]any, deleted bool) *Version {
	if s.dryRun {
		return &Version{Key: key, Revision: s.revision, At: time.Now(), Object: object, Raw: encode(object), Deleted: deleted}
	}
	s.revision++
	(&unstructured.Unstructured{Object: object}).SetResourceVersion(strconv.FormatInt(s.revision, 10))
	raw, err := json.Marshal(object)
	if err != nil {
		panic(err) // the object was decoded from JSON
	}
	version := &Version{
		Key: key, Revision: s.revision, At: time.Now(), Object: object, Raw: raw, Deleted: deleted, Requested: s.requested,
	}
	s.log = append(s.log, version)
	if deleted {
		delete(s.live, key)
	} else {
		s.live[key] = version
	}
	return version
}

const uidFormat = "00000000-0000-4000-8000-%012d"

// newUID returns a UID that depends only on the number of earlier calls.
func (s *Store) newUID() types.UID {
	s.uids++
	return types.UID(fmt.Sprintf(uidFormat, s.uids))
}

// Now returns the time of the API server's clock.
func (s *Store) Now() time.Time { return time.Now().Add(s.Skew) }

// now returns the time of the API server's clock in the precision of objects.
func (s *Store) now() metav1.Time { return metav1.NewTime(s.Now().UTC().Truncate(time.Second)) }

// GarbageCollect deletes the objects whose owners are all gone, and returns their keys. It repeats
// this until no such object is left.
func (s *Store) GarbageCollect() []Key {
	var out []Key
	for {
		uids := map[types.UID]bool{}
		for _, found := range s.live {
			uids[found.Meta().GetUID()] = true
		}
		var orphans []*Version
		for _, found := range s.live {
			object := found.Meta()
			owned := slices.ContainsFunc(object.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return uids[o.UID] })
			if len(object.GetOwnerReferences()) > 0 && !owned && object.GetDeletionTimestamp() == nil {
				orphans = append(orphans, found)
			}
		}
		if len(orphans) == 0 {
			return out
		}
		slices.SortFunc(orphans, func(a, b *Version) int { return cmp.Compare(a.String(), b.String()) })
		for _, orphan := range orphans {
			out = append(out, orphan.Key)
			if _, err := s.Delete(orphan.Key, DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				panic(err)
			}
		}
	}
}
