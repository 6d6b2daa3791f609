package nginxoperator

import (
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/operatormanager"
	"github.com/example/nginx-operator/internal/wellknown"
)

// replicas is how many Pods the Deployment is to have.
type replicas struct {
	number int32
	// declared is spec.replicas of the object. set is the number that the operator gave the Deployment while it was that: another only
	// where spec.autoscaling is or was declared. The Deployment's annotation keeps both.
	declared, set int32
}

// record returns the text of the annotation, which is that of release 0.1.0 where nothing is to be told beyond that.
func (r replicas) record() string {
	out := strconv.Itoa(int(r.declared))
	if r.set != r.declared {
		out += "=" + strconv.Itoa(int(r.set))
	}
	return out
}

// recorded reads the annotation, and reports whether it could have been written by the operator.
func recorded(live *appsv1.Deployment) (out replicas, known bool) {
	declared, set, both := strings.Cut(live.Annotations[wellknown.AnnotationReplicas], "=")
	if !both {
		set = declared
	}
	one, errOne := strconv.ParseUint(declared, 10, 16)
	other, errOther := strconv.ParseUint(set, 10, 16)
	known = errOne == nil && errOther == nil && max(one, other) <= maxReplicas
	if known {
		out.declared, out.set = int32(one), int32(other)
	}
	return out, known
}

// replicasOf returns the replicas of the object, except where somebody set others through the scale subresource of the Deployment (a
// HorizontalPodAutoscaler does) since the object last changed its own: then those. With spec.autoscaling they are anyway whatever the
// Deployment has, within the bounds, and stay so when it is taken out, until the object changes its own.
func replicasOf(object *v1alpha2.NginxOperator, live *appsv1.Deployment) replicas {
	out := replicas{declared: defaults.Replicas(&object.Spec)}
	out.number, out.set = out.declared, out.declared
	if live == nil || live.Spec.Replicas == nil {
		return out.within(object)
	}
	before, known := recorded(live)
	scaled, same := scaledByOthers(live), known && before.declared == out.declared
	// That of another declaration counts only for an autoscaler, and only where the Deployment agrees: an edit of either is drift.
	if same || known && object.Spec.Autoscaling != nil && (scaled || before.set == *live.Spec.Replicas) {
		out.set = before.set
		out.number = out.set
	}
	if scaled && (same || object.Spec.Autoscaling != nil) {
		out.number = *live.Spec.Replicas
	}
	within := out.within(object)
	if scaled && within.number == *live.Spec.Replicas {
		within.set = out.set // it may be a change of the autoscaler's, which is none of the operator's
	}
	return within
}

// within returns the replicas within the bounds of spec.autoscaling, as the operator sets them.
func (r replicas) within(object *v1alpha2.NginxOperator) replicas {
	switch {
	case object.Spec.Autoscaling == nil:
		return r
	case r.declared == 0:
		r.number = 0 // the autoscaler leaves what has no replicas alone
	default:
		if r.number == 0 {
			r.number = r.declared
		}
		bounds := defaults.Autoscaling(&object.Spec)
		r.number = min(max(r.number, *bounds.MinReplicas), bounds.MaxReplicas)
	}
	r.set = r.number
	return r
}

// scaledByOthers reports whether spec.replicas was last set through the scale subresource, which the operator never uses.
func scaledByOthers(deployment *appsv1.Deployment) bool {
	return slices.ContainsFunc(deployment.ManagedFields, operatormanager.SetsReplicasByScale)
}
