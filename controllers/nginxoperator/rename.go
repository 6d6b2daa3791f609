package nginxoperator

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/wellknown"
)

// Nodes find the endpoints of a Service port by its name. A port under a new name has none until the EndpointSlice controller
// has seen the Service, and is refused meanwhile. So before the Service gets the new name, a bridge is built: EndpointSlices of
// our own with the endpoints of the port under its new name. They go as soon as those of the controller have it.
//
// They have the other ports of the same Pods too: where Pods serve different ports, as after a rollout that failed, the controller has an
// EndpointSlice for each kind of them, and with another name it may swap what two of them are for, one after the other. In between, none of
// its EndpointSlices has the Pods of one of them.
const (
	// bridgeSettles is when all nodes can be expected to know of a bridge. Its time of creation is cut to a second.
	bridgeSettles = 2 * time.Second
	// bridgeEnds is when a bridge goes though nobody took over: without endpoints there is nothing to take over.
	bridgeEnds = 30 * time.Second
	// bridgeRetry is when to look again whether the controller has taken over.
	bridgeRetry = time.Second
	// endpointSliceController is the value of the label managed-by of the EndpointSlices that are made for Services.
	endpointSliceController = "endpointslice-controller.k8s.io"
)

// interim gives a port whose name another port of the Service still has a name of its own, until that one is renamed: at no
// moment may a name stand for the endpoints of two ports.
func interim(ports []served, live []corev1.ServicePort) {
	numbers, names := sets.New[int32](), sets.New[string]()
	for _, port := range ports {
		numbers.Insert(port.number)
		names.Insert(port.name)
	}
	owner := map[string]int32{}
	for _, port := range live {
		names.Insert(port.Name)
		if numbers.Has(port.Port) {
			owner[port.Name] = port.Port
		}
	}
	for i := range ports {
		if number, used := owner[ports[i].name]; used && number != ports[i].number {
			ports[i].name = freeName(ports[i].name, ports[i].number, names.Has)
			names.Insert(ports[i].name)
		}
	}
}

// newNames returns the names that the ports of the Service will have, by number, and reports whether one of them is another than now.
func newNames(live []corev1.ServicePort, ports []served) (names map[int32]string, renamed bool) {
	names = map[int32]string{}
	for _, before := range live {
		for _, port := range ports {
			if port.number == before.Port {
				names[port.number] = port.name
				renamed = renamed || port.name != before.Name
			}
		}
	}
	return names, renamed
}

// bridgeOf returns the EndpointSlice that has the ports of another one under their new names, nil where none of them gets another.
func bridgeOf(slice *discoveryv1.EndpointSlice, live []corev1.ServicePort, names map[int32]string) *discoveryv1.EndpointSlice {
	out := &discoveryv1.EndpointSlice{AddressType: slice.AddressType, Endpoints: slice.Endpoints}
	out.Namespace, out.Name = slice.Namespace, slice.Name+"-renamed"
	renamed := false
	for _, port := range slice.Ports {
		for _, before := range live {
			if name, found := names[before.Port]; found && port.Name != nil && *port.Name == before.Name {
				renamed = renamed || name != before.Name
				port.Name = &name
				out.Ports = append(out.Ports, port)
				break
			}
		}
	}
	if !renamed || len(out.Endpoints) == 0 {
		return nil
	}
	return out
}

// carries reports whether a bridge is the one for these new names: of a name it has endpoints of the port that gets it.
func carries(bridges []discoveryv1.EndpointSlice, names map[int32]string, containers []containerPort) bool {
	for name, numbers := range portsOf(bridges) {
		if !slices.Contains(slices.Collect(maps.Values(names)), name) {
			return false
		}
		for number := range numbers {
			listens := func(port containerPort) bool { return port.listens == number }
			same := func(port containerPort) bool { return listens(port) && names[port.number] == name }
			if slices.ContainsFunc(containers, listens) && !slices.ContainsFunc(containers, same) {
				return false
			}
		}
	}
	return true
}

// portsOf returns on which numbers the endpoints of EndpointSlices listen, by the names of the Service's ports. A name has several
// while Pods listen on different ones.
func portsOf(endpoints []discoveryv1.EndpointSlice) map[string]sets.Set[int32] {
	out := map[string]sets.Set[int32]{}
	for i := range endpoints {
		for _, port := range endpoints[i].Ports {
			if port.Name == nil || port.Port == nil {
				continue
			}
			if out[*port.Name] == nil {
				out[*port.Name] = sets.New[int32]()
			}
			out[*port.Name].Insert(*port.Port)
		}
	}
	return out
}

// takenOver reports whether the controller's EndpointSlices have all of a bridge that the Service still asks for, and nothing under a
// name that it does not: the controller writes one after the other.
func takenOver(bridges, controllers []discoveryv1.EndpointSlice, live []corev1.ServicePort) bool {
	asked, made := sets.New[string](), sets.KeySet(portsOf(controllers))
	for _, port := range live {
		asked.Insert(port.Name)
	}
	return asked.IsSuperset(made) && made.IsSuperset(asked.Intersection(sets.KeySet(portsOf(bridges))))
}

// bridge builds what the Service needs before its ports get these names, and takes away what it no longer needs. Where it
// returns hold, nothing may be changed yet; where it returns a time, the reconcile is to be made again then.
func (r *Reconciler) bridge(
	ctx context.Context, object *v1alpha2.NginxOperator, now running, ports []served,
) (hold bool, again time.Duration, err error) {
	names, renamed := newNames(now.service, ports)
	list := &discoveryv1.EndpointSliceList{}
	ours := client.MatchingLabels{discoveryv1.LabelServiceName: object.Name, discoveryv1.LabelManagedBy: wellknown.OperatorName}
	if err := r.Client.List(ctx, list, client.InNamespace(object.Namespace), ours); err != nil {
		return false, 0, fmt.Errorf("failed to list EndpointSlices: %w", err)
	}
	bridges := slices.DeleteFunc(slices.Clone(list.Items), func(slice discoveryv1.EndpointSlice) bool {
		return !metav1.IsControlledBy(&slice, object) || slice.DeletionTimestamp != nil
	})
	if len(bridges) == 0 && !renamed {
		return false, 0, nil
	}
	age := bridgeEnds
	for i := range bridges {
		age = min(age, time.Since(bridges[i].CreationTimestamp.Time))
	}
	if len(bridges) > 0 && renamed && carries(bridges, names, now.containers) {
		return age < bridgeSettles, max(bridgeSettles-age, bridgeRetry), nil
	}
	controllers, err := r.endpointsOf(ctx, object)
	if err != nil {
		return false, 0, err
	}
	if len(bridges) == 0 {
		return r.build(ctx, object, controllers, now.service, names)
	}
	if age < bridgeEnds && !takenOver(bridges, controllers, now.service) {
		return renamed, bridgeRetry, nil
	}
	for i := range bridges {
		if err := r.Applier.Delete(ctx, bridges[i].DeepCopy()); err != nil {
			return false, 0, err
		}
	}
	if renamed {
		again = bridgeRetry
	}
	return renamed, again, nil
}

// settle takes away the bridge of a change that is no longer made, also one that an earlier leader has built. Where it returns a
// time, the bridge is needed until somebody has taken over, of which no event tells.
func (r *Reconciler) settle(ctx context.Context, object *v1alpha2.NginxOperator) (again time.Duration, err error) {
	service, err := r.liveService(ctx, object)
	if err != nil {
		return 0, err
	}
	_, again, err = r.bridge(ctx, object, running{service: service.Spec.Ports}, nil)
	return again, err
}

// endpointsOf reads the EndpointSlices that were made for the Service.
func (r *Reconciler) endpointsOf(ctx context.Context, object *v1alpha2.NginxOperator) ([]discoveryv1.EndpointSlice, error) {
	list := &discoveryv1.EndpointSliceList{}
	err := r.Applier.Reader.List(ctx, list, client.InNamespace(object.Namespace),
		client.MatchingLabels{discoveryv1.LabelServiceName: object.Name, discoveryv1.LabelManagedBy: endpointSliceController})
	if err != nil {
		return nil, fmt.Errorf("failed to read EndpointSlices: %w", err)
	}
	return list.Items, nil
}

// build makes the bridge. Where none can be made, the change is not held up for it.
func (r *Reconciler) build(
	ctx context.Context, object *v1alpha2.NginxOperator, from []discoveryv1.EndpointSlice, live []corev1.ServicePort, names map[int32]string,
) (hold bool, again time.Duration, err error) {
	for i := range from {
		slice := bridgeOf(&from[i], live, names)
		if slice == nil {
			continue
		}
		slice.Labels = map[string]string{discoveryv1.LabelServiceName: object.Name, discoveryv1.LabelManagedBy: wellknown.OperatorName}
		maps.Copy(slice.Labels, wellknown.Selector(object.Name))
		_, err := r.Applier.Apply(ctx, object, nil, slice)
		switch {
		case apierrors.IsForbidden(err) || apierrors.IsInvalid(err):
		case err != nil:
			return false, 0, err
		default:
			hold, again = true, bridgeSettles
		}
	}
	return hold, again, nil
}
