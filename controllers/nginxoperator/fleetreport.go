package nginxoperator

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/fleet"
	"github.com/example/nginx-operator/internal/wellknown"
)

// reportToFleet reports the place of an object to the gate. A nil place means that it is not known.
func (r *Reconciler) reportToFleet(object *v1alpha2.NginxOperator, place *fleet.Place) {
	key := client.ObjectKeyFromObject(object)
	switch {
	case place == nil:
		r.Fleet.Seen(key)
	case *place == fleet.Outside && defaults.Replicas(&object.Spec) == 0:
		r.Fleet.Forget(key) // objects without Pods must not raise the number of instances that roll at a time
	default:
		r.Fleet.Report(key, *place, wellknown.IsCanary(object.Labels))
	}
}
