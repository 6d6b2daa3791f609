// Package cached reads objects of the operator's cache. The cache has only some fields of an object
// (internal/objectcache). The functions here return the same for a whole object and for its form
// in the cache.
package cached

import (
	"encoding/json"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/codec"
	"github.com/example/nginx-operator/internal/defaults"
)

// InstanceIndex is the cache's index (client.MatchingFields) of objects by NginxOperator: by the
// controlling NginxOperator, or by the label if another controller creates the objects. Without the
// index, each list would visit all objects of the namespace. A list requires a namespace.
const InstanceIndex = "instance"

// ControllingInstance returns the name of the NginxOperator that controls a child, or "".
func ControllingInstance(child metav1.Object) string {
	if owner := metav1.GetControllerOfNoCopy(child); owner != nil && owner.Kind == "NginxOperator" {
		return owner.Name
	}
	return ""
}

// AnnotationPart marks a part. Its value is the hash of a child, or the hashes of the spec and of
// the status of an NginxOperator. Its name is random, so that no client can forge a part.
var AnnotationPart = "internal.operator.example.com/part-" + rand.String(20)

// AnyReference is the value of an index of references for a part with so many references that the
// cache lacks them. It can need every object of its namespace.
const AnyReference = "*"

// seed is random, so no client can create two contents with the same hash.
var seed = maphash.MakeSeed()

// IsPart reports whether an object of the cache is only a part.
func IsPart(object client.Object) bool {
	_, is := object.GetAnnotations()[AnnotationPart]
	return is
}

// PartsDiffer reports whether one of two versions of a child is a part, and whether the versions
// differ in a field that the cache would have without its bounds.
func PartsDiffer(before, now client.Object) (differ, isPart bool) {
	was, wasPart := before.GetAnnotations()[AnnotationPart]
	is, isPart := now.GetAnnotations()[AnnotationPart]
	return wasPart != isPart || was != is, wasPart || isPart
}

// SpecsDiffer reports whether the specs of two versions of an NginxOperator differ.
func SpecsDiffer(before, now *v1alpha2.NginxOperator) bool {
	if IsPart(before) || IsPart(now) {
		return SpecHash(before) != SpecHash(now)
	}
	return !defaults.SameSpec(&before.Spec, &now.Spec)
}

// StatusesDiffer reports whether the statuses of two versions of an NginxOperator differ.
func StatusesDiffer(before, now *v1alpha2.NginxOperator) bool {
	if IsPart(before) || IsPart(now) {
		return StatusHash(before) != StatusHash(now)
	}
	return !equality.Semantic.DeepEqual(before.Status, now.Status)
}

// SpecHash returns a hash of the spec of an NginxOperator, or of its part.
func SpecHash(object *v1alpha2.NginxOperator) string {
	if hashes, isPart := object.Annotations[AnnotationPart]; isPart {
		spec, _, _ := strings.Cut(hashes, " ")
		return spec
	}
	return hashOfJSON(object.Spec)
}

// StatusHash returns a hash of the status of an NginxOperator, or of its part.
func StatusHash(object *v1alpha2.NginxOperator) string {
	if hashes, isPart := object.Annotations[AnnotationPart]; isPart {
		_, status, _ := strings.Cut(hashes, " ")
		return status
	}
	return hashOfJSON(object.Status)
}

// hashOfJSON returns a hash of a value. Values that have no JSON have the same hash as null.
func hashOfJSON(value any) string {
	raw, err := json.Marshal(value)
	if err != nil {
		raw = []byte("null")
	}
	return fmt.Sprintf("%x", maphash.Bytes(seed, raw))
}

// State is what metrics and the liveness probe read of an NginxOperator.
type State struct {
	// Ready is the status of the Ready condition, Unknown if there is no such condition.
	Ready metav1.ConditionStatus
	// Unreadable reports whether the object has an unreadable value (codec.Unreadable).
	Unreadable bool
	// Waiting reports whether the object waits for a reconcile: its status does not have its latest
	// generation. An unreadable object and an object in deletion do not wait.
	Waiting bool
	// Down reports whether an object that has been Ready has no ready Pod. An object with 0 replicas
	// is not down.
	Down bool
	// Blocking has the known reasons in status.blockedBy, without duplicates, in ascending order.
	Blocking []string
	// Expiries has the expiry of each certificate in status.certificates.
	Expiries []time.Time
}

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

// StateOf returns the state of an NginxOperator.
func StateOf(object *v1alpha2.NginxOperator) State {
	out, status := State{Ready: metav1.ConditionUnknown}, KnownStatus(&object.Status)
	if len(status.Conditions) > 0 {
		out.Ready = status.Conditions[0].Status
	}

	out.Down = status.LastGoodRevision != nil && status.ReadyReplicas == 0 && defaults.Replicas(&object.Spec) > 0
	_, out.Unreadable = codec.Unreadable(object)
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

// KnownStatus returns what StateOf reads of a status: the generation, the ready replicas, whether
// the object is ready and has ever been, each known reason in status.blockedBy once, and the expiry
// of up to maxCertificates certificates.
// Its size is bounded, and it has no text of a client.
func KnownStatus(status *v1alpha2.NginxOperatorStatus) v1alpha2.NginxOperatorStatus {
	out := v1alpha2.NginxOperatorStatus{ObservedGeneration: status.ObservedGeneration, ReadyReplicas: status.ReadyReplicas}
	if status.LastGoodRevision != nil {
		out.LastGoodRevision = &v1alpha2.GoodRevision{}
	}
	if ready := meta.FindStatusCondition(status.Conditions, v1alpha2.ConditionReady); ready != nil {
		out.Conditions = []metav1.Condition{{Type: ready.Type, Status: ready.Status}}
	}

	for _, reason := range BlockingReasons() {
		if slices.ContainsFunc(status.BlockedBy, func(blocker v1alpha2.Blocker) bool { return blocker.Reason == reason }) {
			out.BlockedBy = append(out.BlockedBy, v1alpha2.Blocker{Reason: reason})
		}
	}

	for i := range status.Certificates[:min(len(status.Certificates), maxCertificates)] {
		out.Certificates = append(out.Certificates, v1alpha2.Certificate{NotAfter: status.Certificates[i].NotAfter})
	}
	return out
}
