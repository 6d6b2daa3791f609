// Package endpointslice keeps Service ports reachable while they are renamed.
//
// Nodes find the endpoints of a Service port by its name. A port with a new name has no endpoints
// until the EndpointSlice controller has seen the Service. So before a rename, the operator writes
// a bridge: EndpointSlices with the endpoints of the port under its new name. It deletes the bridge
// when the EndpointSlices of the controller have that name.
//
// A bridge also has the other ports of the same Pods. If Pods listen on different ports, the
// controller has an EndpointSlice for each set of ports, and after a rename it may exchange two of
// them, one after the other. In between, none of them has the Pods of one of these sets.
//
// The operator keeps the endpoints of a bridge up to date, so that no Pod receives connections
// after it has stopped listening.
package endpointslice

import (
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/live"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/wellknown"
	"github.com/example/nginx-operator/pkg/apply"
)

const (
	// bridgeSettles is the time until all nodes have a bridge.
	bridgeSettles = 2 * time.Second
	// bridgeEnds is the age at which a bridge ends even if the controller has no endpoints.
	bridgeEnds = 30 * time.Second
	// bridgeRetry is the interval of checks whether the controller has taken over.
	bridgeRetry = time.Second
)

// Bridges writes and deletes the bridges of an object with this live state.
type Bridges struct {
	Live    live.State
	Applier *apply.Applier
}

func newNames(live, ports []corev1.ServicePort) (names map[int32]string, renamed bool) {
	names = map[int32]string{}
	for _, before := range live {
		for _, port := range ports {
			if port.Port == before.Port {
				names[port.Port] = port.Name
				renamed = renamed || port.Name != before.Name
			}
		}
	}
	return names, renamed
}

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

// carries reports whether bridges are for these new names and the right ports.
func carries(bridges []discoveryv1.EndpointSlice, names map[int32]string, containers []operand.ContainerPort) bool {
	for name, numbers := range portsOf(bridges) {
		if !slices.Contains(slices.Collect(maps.Values(names)), name) {
			return false
		}
		for number := range numbers {
			listens := func(port operand.ContainerPort) bool { return port.Listens == number }
			same := func(port operand.ContainerPort) bool { return listens(port) && names[port.Number] == name }
			if slices.ContainsFunc(containers, listens) && !slices.ContainsFunc(containers, same) {
				return false
			}
		}
	}
	return true
}

// withEndpoints returns the EndpointSlices that have endpoints.
func withEndpoints(all []discoveryv1.EndpointSlice) []discoveryv1.EndpointSlice {
	return slices.DeleteFunc(slices.Clone(all), func(slice discoveryv1.EndpointSlice) bool { return len(slice.Endpoints) == 0 })
}

// unseen reports whether ready Pods serve a renamed port, and the controller's EndpointSlices, which
// have Pods, do not have its present name yet.
func unseen(controllers []discoveryv1.EndpointSlice, now operand.Running, names map[int32]string) bool {
	controllers = withEndpoints(controllers)
	served := portsOf(controllers)
	return len(controllers) > 0 && slices.ContainsFunc(now.Service, func(before corev1.ServicePort) bool {
		name, found := names[before.Port]
		return found && name != before.Name && served[before.Name] == nil && now.IsReady(before.Port)
	})
}

// lacks reports whether Pods have endpoints of a renamed port, and bridges do not have its new
// name. A bridge that was written before these Pods were created does not.
func lacks(bridges, controllers []discoveryv1.EndpointSlice, live []corev1.ServicePort, names map[int32]string) bool {
	carried, served := portsOf(bridges), portsOf(withEndpoints(controllers))
	return slices.ContainsFunc(live, func(before corev1.ServicePort) bool {
		name, found := names[before.Port]
		return found && name != before.Name && served[before.Name] != nil && carried[name] == nil
	})
}

// portsOf returns the port numbers of the endpoints in EndpointSlices, by the name of the Service
// port. A name has several numbers while Pods listen on different ones.
func portsOf(endpoints []discoveryv1.EndpointSlice) map[string]sets.Set[int32] {
	numbers := map[string]sets.Set[int32]{}
	for i := range endpoints {
		for _, port := range endpoints[i].Ports {
			if port.Name != nil && port.Port != nil {
				if numbers[*port.Name] == nil {
					numbers[*port.Name] = sets.New[int32]()
				}
				numbers[*port.Name].Insert(*port.Port)
			}
		}
	}

	return numbers
}

// takenOver reports whether the controller's EndpointSlices, which it writes one after the other,
// have all names of the bridges that the Service has, and no name that the Service does not have.
func takenOver(bridges, controllers []discoveryv1.EndpointSlice, live []corev1.ServicePort) bool {
	asked, made := sets.New[string](), sets.KeySet(portsOf(controllers))
	for _, port := range live {
		asked.Insert(port.Name)
	}
	return asked.IsSuperset(made) && made.IsSuperset(asked.Intersection(sets.KeySet(portsOf(bridges))))
}

// Ensure writes the bridge for the new names of ports, and deletes bridges that are no longer
// needed. If hold is true, nothing may be changed yet. If again is not 0, the reconcile must be
// repeated after that time.
func (b Bridges) Ensure(
	ctx context.Context, object *v1alpha2.NginxOperator, now operand.Running, ports []corev1.ServicePort,
) (hold bool, again time.Duration, err error) {
	names, renamed := newNames(now.Service, ports)
	known, err := b.Live.Bridges()
	if err != nil || !renamed && !slices.ContainsFunc(known, func(one *discoveryv1.EndpointSlice) bool { return isBridgeOf(object, one) }) {
		return false, 0, err
	}

	bridges, controllers, err := b.current(ctx, object)
	if err != nil {
		return false, 0, err
	}
	if len(bridges) == 0 && !renamed {
		return false, 0, nil
	}

	age := b.age(object)
	if len(bridges) > 0 && renamed && carries(bridges, names, now.Containers) && !lacks(bridges, controllers, now.Service, names) {
		return age < bridgeSettles, max(bridgeSettles-age, bridgeRetry), nil
	}
	if len(bridges) == 0 {
		// Without the endpoints of a port that has just been added, there is no bridge for it.
		if unseen(controllers, now, names) && age < bridgeEnds {
			return true, bridgeRetry, nil
		}
		return b.build(ctx, object, controllers, now.Service, names)
	}
	if age < bridgeEnds && !takenOver(bridges, controllers, now.Service) {
		return renamed, bridgeRetry, nil
	}

	for i := range bridges {
		if err := b.Applier.Delete(ctx, bridges[i].DeepCopy()); err != nil {
			return false, 0, err
		}
	}

	b.forgetAge(object)
	if renamed {
		again = bridgeRetry
	}

	return renamed, again, nil
}

// age returns how long this process has known the bridge of an object, or has waited to write it.
// The clock of the API server, which sets the timestamps of objects, may be ahead. A new leader
// starts again.
func (b Bridges) age(object *v1alpha2.NginxOperator) (age time.Duration) {
	b.Applier.Memory.Update(object, func(known *apply.Remembered) {
		if known.Bridged.IsZero() {
			known.Bridged = time.Now()
		}
		age = time.Since(known.Bridged)
	})
	return age
}

// forgetAge lets the age of the next bridge start from 0.
func (b Bridges) forgetAge(object *v1alpha2.NginxOperator) {
	b.Applier.Memory.Update(object, func(known *apply.Remembered) { known.Bridged = time.Time{} })
}

// Settle deletes the bridge of an earlier change, also one of another leader. If again is not 0,
// the bridge is still needed, and no event reports its end: the call must be repeated after again.
func (b Bridges) Settle(ctx context.Context, object *v1alpha2.NginxOperator) (again time.Duration, err error) {
	_, again, err = b.Ensure(ctx, object, operand.Running{Service: b.Live.Service().Spec.Ports}, nil)
	return again, err
}

// build writes the bridge. A bridge that cannot be written does not hold the change.
func (b Bridges) build(
	ctx context.Context, object *v1alpha2.NginxOperator, from []discoveryv1.EndpointSlice, live []corev1.ServicePort, names map[int32]string,
) (hold bool, again time.Duration, err error) {
	// The EndpointSlices are current. A bridge to an older declaration would replace their endpoints.
	if err := b.Applier.Confirm(ctx, object); err != nil {
		return false, 0, err
	}

	b.forgetAge(object)
	for i := range from {
		slice := bridgeOf(&from[i], live, names)
		if slice == nil {
			continue
		}

		slice.Labels = map[string]string{discoveryv1.LabelServiceName: object.Name, discoveryv1.LabelManagedBy: wellknown.OperatorName}
		maps.Copy(slice.Labels, wellknown.Selector(object.Name))
		_, err := b.Applier.Apply(ctx, object, b.Live, nil, slice)

		// It may exist despite an error.
		b.Applier.Memory.Update(object, func(known *apply.Remembered) { known.Bridged = time.Now() })
		switch {
		case isRefused(err) || apply.IsNotOurs(err) != nil:
			log.FromContext(ctx).Error(err, "Failed to bridge a renamed port; its new connections can fail for about a second",
				"endpointSlice", slice.Name)
		case err != nil:
			return false, 0, err
		default:
			hold, again = true, bridgeSettles
		}
	}

	return hold, again, nil
}
