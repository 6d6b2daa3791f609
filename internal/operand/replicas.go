package operand

import (
	"fmt"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/wellknown"
)

// Replicas is the number of Pods of a Deployment.
type Replicas struct {
	// Number is the number of Pods.
	Number int32
	// retained is the value of wellknown.AnnotationReplicas while the Deployment keeps a number of
	// release 0.5.1, or "".
	retained string
}

// ReplicasOf returns the number of Pods of the object, which depends on the spec, except for these:
//   - If spec.autoscaling is set, the number of the live Deployment stays, within the bounds.
//   - The number of release 0.5.1 stays until the object changes: an upgrade changes none.
func ReplicasOf(object *v1alpha2.NginxOperator, live *appsv1.Deployment) Replicas {
	declared := defaults.Replicas(&object.Spec)
	if object.Spec.Autoscaling != nil {
		return Replicas{Number: autoscaled(object, live, declared)}
	}

	out := Replicas{Number: declared}
	if live == nil || live.Spec.Replicas == nil || *live.Spec.Replicas == declared {
		return out
	}

	now := retained(declared, object.Generation)
	if value := live.Annotations[wellknown.AnnotationReplicas]; value == now || wroteBefore060(value, declared) {
		out = Replicas{Number: *live.Spec.Replicas, retained: now}
	}

	return out
}

// autoscaled returns the number of Pods of an object with spec.autoscaling.
func autoscaled(object *v1alpha2.NginxOperator, live *appsv1.Deployment, declared int32) int32 {
	if declared == 0 {
		return 0 // an autoscaler ignores a Deployment without replicas
	}

	number := declared
	if live != nil && live.Spec.Replicas != nil && *live.Spec.Replicas > 0 {
		number = *live.Spec.Replicas
	}

	bounds := defaults.Autoscaling(&object.Spec)
	return min(max(number, *bounds.MinReplicas), bounds.MaxReplicas)
}

// retained returns the annotation of a Deployment that retains its number while the object has this
// generation and these replicas. A blocked object is applied with an older generation.
func retained(declared int32, generation int64) string {
	return fmt.Sprintf("replicas=%d,generation=%d", declared, generation)
}

// wroteBefore060 reports whether a release before 0.6.0 wrote a value of the annotation for these
// replicas: spec.replicas ("2"), and after autoscaling also that of the Deployment ("2=5").
func wroteBefore060(value string, declared int32) bool {
	before, set, isPair := strings.Cut(value, "=")
	if !isPair {
		set = before
	}

	number, err := strconv.ParseUint(set, 10, 16)
	return before == strconv.Itoa(int(declared)) && err == nil && number <= MaxReplicas
}

// MaxReplicas is the schema's limit of spec.replicas and of spec.autoscaling.
const MaxReplicas = 1000
