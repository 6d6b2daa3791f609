// Package census keeps the state of each cached NginxOperator in a few bytes. The metrics, the
// liveness probe, and the fleet rollout need no more, and decoding all cached objects for each of
// their reads would be expensive.
package census

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/bounds"
)

// Entry is the state of an NginxOperator.
type Entry struct {
	// Ready is the status of the Ready condition, Unknown if there is no such condition.
	Ready metav1.ConditionStatus
	// Unreadable reports whether the object is stored with an unreadable value (bounds.Unreadable).
	Unreadable bool
	// Waiting reports whether the object waits for a reconcile: its status does not have its latest
	// generation. An unreadable object and an object in deletion do not wait.
	Waiting bool
	// Blocking has the known reasons in status.blockedBy, without duplicates, in ascending order.
	Blocking []string
	// Expiries has the expiry of each certificate in status.certificates.
	Expiries []time.Time
}

// maxCertificates is the maximum number of certificates of an object.
const maxCertificates = 16

// BlockingReasons returns all reasons that status.blockedBy can have.
func BlockingReasons() []string {
	return []string{
		v1alpha2.ReasonReferenceNotFound, v1alpha2.ReasonInvalidReference, v1alpha2.ReasonInvalidConfiguration, v1alpha2.ReasonPaused,
		v1alpha2.ReasonForgedContent, v1alpha2.ReasonRolledBack, v1alpha2.ReasonNameConflict, v1alpha2.ReasonQuotaExceeded,
		v1alpha2.ReasonForbidden, v1alpha2.ReasonDeploymentPaused,
		v1alpha2.ReasonInvalidChild, v1alpha2.ReasonNamespaceTerminating, v1alpha2.ReasonAPIError,
		v1alpha2.ReasonImagePullFailed,
		v1alpha2.ReasonContainerConfigError, v1alpha2.ReasonCrashLoop, v1alpha2.ReasonUnschedulable, v1alpha2.ReasonProgressDeadlineExceeded,
		v1alpha2.ReasonAPIMissing, v1alpha2.ReasonRouteNotAccepted, v1alpha2.ReasonChildContested,
	}
}

// Census has an entry for each object of its informers. It is a handler of their events. Create it
// with New.
type Census struct {
	informers int

	mu            sync.RWMutex
	registrations []toolscache.ResourceEventHandlerRegistration
	entries       map[types.NamespacedName]Entry
}

// New returns a census of the objects in these namespaces, or in all namespaces if there are none. A
// cache has an informer for each namespace.
func New(namespaces ...string) *Census {
	return &Census{informers: max(1, len(namespaces)), entries: map[types.NamespacedName]Entry{}}
}

// Follow adds the objects of an informer. It returns an error if the informer has ended.
func (c *Census) Follow(informer toolscache.SharedInformer) error {
	registration, err := informer.AddEventHandler(c)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.registrations = append(c.registrations, registration)
	return nil
}

// Synced reports whether the census has all objects. It never has them in a standby, which has no
// informers.
func (c *Census) Synced() bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return len(c.registrations) == c.informers &&
		!slices.ContainsFunc(c.registrations, func(r toolscache.ResourceEventHandlerRegistration) bool { return !r.HasSynced() })
}

// Wait waits until the census has all objects of the informers so far. It returns false if the
// context ends first.
func (c *Census) Wait(ctx context.Context) bool {
	c.mu.RLock()
	checkers := make([]toolscache.DoneChecker, 0, len(c.registrations))
	for _, registration := range c.registrations {
		checkers = append(checkers, registration.HasSyncedChecker())
	}
	c.mu.RUnlock()
	return toolscache.WaitFor(ctx, "", checkers...)
}

// Entries returns the entries at this moment.
func (c *Census) Entries() []Entry {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return slices.AppendSeq(make([]Entry, 0, len(c.entries)), maps.Values(c.entries))
}

// Waiting returns the number of objects that wait for a reconcile.
func (c *Census) Waiting() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	waiting := 0
	for _, entry := range c.entries {
		if entry.Waiting {
			waiting++
		}
	}
	return waiting
}

// Names returns the names of the objects at this moment, in ascending order.
func (c *Census) Names() []types.NamespacedName {
	c.mu.RLock()
	out := slices.AppendSeq(make([]types.NamespacedName, 0, len(c.entries)), maps.Keys(c.entries))
	c.mu.RUnlock()
	slices.SortFunc(out, func(a, b types.NamespacedName) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return out
}

// OnAdd implements cache.ResourceEventHandler.
func (c *Census) OnAdd(object any, _ bool) { c.set(object) }

// OnUpdate implements cache.ResourceEventHandler.
func (c *Census) OnUpdate(_, object any) { c.set(object) }

// OnDelete implements cache.ResourceEventHandler.
func (c *Census) OnDelete(object any) {
	name, err := toolscache.DeletionHandlingObjectToName(object)
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.entries, types.NamespacedName(name))
}

func (c *Census) set(object any) {
	instance, ok := object.(*v1alpha2.NginxOperator)
	if !ok {
		return
	}
	entry := entryOf(instance)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entries[types.NamespacedName{Namespace: instance.Namespace, Name: instance.Name}] = entry
}

func entryOf(object *v1alpha2.NginxOperator) Entry {
	out, status := Entry{Ready: metav1.ConditionUnknown}, Known(&object.Status)
	if len(status.Conditions) > 0 {
		out.Ready = status.Conditions[0].Status
	}
	_, out.Unreadable = bounds.Unreadable(object)
	out.Waiting = !out.Unreadable && object.DeletionTimestamp.IsZero() && status.ObservedGeneration != object.Generation
	for i := range status.BlockedBy {
		out.Blocking = append(out.Blocking, status.BlockedBy[i].Reason)
	}
	slices.Sort(out.Blocking)
	for i := range status.Certificates {
		out.Expiries = append(out.Expiries, status.Certificates[i].NotAfter.Time)
	}
	return out
}

// Known returns what the census reads of a status: the generation, whether the object is ready, each
// known reason in status.blockedBy once, and the expiry of up to maxCertificates certificates. Its size
// is bounded, and it has no text of a client.
func Known(status *v1alpha2.NginxOperatorStatus) v1alpha2.NginxOperatorStatus {
	out := v1alpha2.NginxOperatorStatus{ObservedGeneration: status.ObservedGeneration}
	if ready := meta.FindStatusCondition(status.Conditions, v1alpha2.ConditionReady); ready != nil {
		out.Conditions = []metav1.Condition{{Type: ready.Type, Status: ready.Status}}
	}
	for _, reason := range BlockingReasons() {
		blocks := func(one v1alpha2.Blocker) bool { return one.Reason == reason }
		if slices.ContainsFunc(status.BlockedBy, blocks) {
			out.BlockedBy = append(out.BlockedBy, v1alpha2.Blocker{Reason: reason})
		}
	}
	for i := range status.Certificates[:min(len(status.Certificates), maxCertificates)] {
		out.Certificates = append(out.Certificates, v1alpha2.Certificate{NotAfter: status.Certificates[i].NotAfter})
	}
	return out
}
