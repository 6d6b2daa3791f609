package nginxoperator

import (
	"hash/maphash"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/cached"
)

// reports remembers the last status that this process wrote to each object. If an object has
// another status, another client has written it, and the operator writes it again. The zero value
// is empty.
type reports struct {
	mu sync.Mutex
	// statuses has the hash of each status.
	statuses map[types.NamespacedName]uint64
}

var reportSeed = maphash.MakeSeed()

// reportFor returns the hash of the status of an object. A later object with the same name has other
// hashes.
func reportFor(object *v1alpha2.NginxOperator) uint64 {
	return maphash.String(reportSeed, cached.StatusHash(object)+string(object.UID))
}

// wrote remembers the status of an object.
func (r *reports) wrote(object *v1alpha2.NginxOperator) {
	found := reportFor(object)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.statuses == nil {
		r.statuses = map[types.NamespacedName]uint64{}
	}
	r.statuses[client.ObjectKeyFromObject(object)] = found
}

// last returns the hash of the last status, and false if this process has not written one.
func (r *reports) last(object types.NamespacedName) (uint64, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	out, known := r.statuses[object]
	return out, known
}

// forget drops the status of a deleted object.
func (r *reports) forget(object types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.statuses, object)
}

// changedByOthers passes a status that differs from the last one that this process wrote. If this
// process has not written to an object, it passes every change.
func (r *reports) changedByOthers() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, isBefore := e.ObjectOld.(*v1alpha2.NginxOperator)
			after, isAfter := e.ObjectNew.(*v1alpha2.NginxOperator)
			if !isBefore || !isAfter || !cached.StatusesDiffer(before, after) {
				return false
			}
			wrote, known := r.last(client.ObjectKeyFromObject(after))
			return !known || wrote != reportFor(after)
		},
	}
}
