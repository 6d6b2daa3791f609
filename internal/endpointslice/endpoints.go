package endpointslice

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/health"
	"github.com/example/nginx-operator/internal/wellknown"
	"github.com/example/nginx-operator/pkg/denied"
)

const endpointSliceController = "endpointslice-controller.k8s.io"

// current returns the bridges, which it updates, and the slices of the controller.
func (b Bridges) current(
	ctx context.Context, object *v1alpha2.NginxOperator,
) (bridges, controllers []discoveryv1.EndpointSlice, err error) {
	if bridges, controllers, err = b.stored(ctx, object); err != nil {
		return nil, nil, err
	}

	pods := map[types.UID]*corev1.Pod{}
	for _, pod := range b.Live.Pods() {
		pods[pod.UID] = pod
	}
	for i := range controllers {
		controllers[i].Endpoints = updated(controllers[i].Endpoints, pods)
	}

	bridges, err = b.refresh(ctx, bridges, pods)
	return bridges, controllers, err
}

// stored reads the EndpointSlices of the Service from the API server, because the cache has no
// endpoints: the bridges of the object, and those of the controller.
func (b Bridges) stored(ctx context.Context, object *v1alpha2.NginxOperator) (bridges, controllers []discoveryv1.EndpointSlice, err error) {
	list, ofService := &discoveryv1.EndpointSliceList{}, client.MatchingLabels{discoveryv1.LabelServiceName: object.Name}
	if err := b.Applier.Reader.List(ctx, list, client.InNamespace(object.Namespace), ofService); err != nil {
		return nil, nil, fmt.Errorf("failed to read EndpointSlices: %w", err)
	}

	for _, slice := range list.Items {
		switch manager := slice.Labels[discoveryv1.LabelManagedBy]; {
		case manager == endpointSliceController:
			controllers = append(controllers, slice)
		case manager == wellknown.OperatorName && isBridgeOf(object, &slice):
			bridges = append(bridges, slice)
		}
	}

	return bridges, controllers, nil
}

// isBridgeOf reports whether an EndpointSlice of the operator is one of the object's Service, and
// stays. It has no controller if the object was deleted with --cascade=orphan in between.
func isBridgeOf(object *v1alpha2.NginxOperator, slice *discoveryv1.EndpointSlice) bool {
	return slice.DeletionTimestamp == nil && (metav1.IsControlledBy(slice, object) || metav1.GetControllerOfNoCopy(slice) == nil)
}

// updated returns endpoints with the conditions that the EndpointSlice controller derives from
// their Pods, without ended Pods. kube-proxy uses either of two endpoints with the same address.
func updated(endpoints []discoveryv1.Endpoint, pods map[types.UID]*corev1.Pod) []discoveryv1.Endpoint {
	var current []discoveryv1.Endpoint
	for _, endpoint := range endpoints {
		if target := endpoint.TargetRef; target != nil && target.Kind == "Pod" {
			pod := pods[target.UID]
			if pod == nil || health.HasEnded(pod) {
				continue
			}

			serves, ends := health.IsReady(pod), pod.DeletionTimestamp != nil
			endpoint.Conditions = discoveryv1.EndpointConditions{Ready: ptr.To(serves && !ends), Serving: &serves, Terminating: &ends}
		}
		current = append(current, endpoint)
	}

	return current
}

// isRefused reports whether the API server refuses a bridge, so that a change does not wait for it.
func isRefused(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || denied.Is(err)
}

func (b Bridges) refresh(
	ctx context.Context, bridges []discoveryv1.EndpointSlice, pods map[types.UID]*corev1.Pod,
) ([]discoveryv1.EndpointSlice, error) {
	var kept []discoveryv1.EndpointSlice
	for i := range bridges {
		stored, current := &bridges[i], bridges[i].DeepCopy()
		current.Endpoints = updated(stored.Endpoints, pods)
		if !equality.Semantic.DeepEqual(current.Endpoints, stored.Endpoints) {
			if len(current.Endpoints) == 0 {
				if err := b.Applier.Delete(ctx, stored.DeepCopy()); err != nil {
					return nil, err
				}
				continue
			}
			switch err := b.Applier.Client.Patch(ctx, current, client.MergeFrom(stored), b.Applier.FieldOwner); {
			case isRefused(err):
				log.FromContext(ctx).Error(err, "Failed to update the endpoints of a renamed port", "endpointSlice", stored.Name)
			case client.IgnoreNotFound(err) != nil:
				return nil, fmt.Errorf("failed to update EndpointSlice %q: %w", stored.Name, err)
			}
		}

		kept = append(kept, *current)
	}

	return kept, nil
}

// HasEndpoints reports whether a port of the Service has ready endpoints of the controller.
func (b Bridges) HasEndpoints(ctx context.Context, object *v1alpha2.NginxOperator, number int32) (bool, error) {
	ports := b.Live.Service().Spec.Ports
	at := slices.IndexFunc(ports, func(port corev1.ServicePort) bool { return port.Port == number })
	if at < 0 {
		return false, nil
	}

	_, controllers, err := b.stored(ctx, object)
	isReady := func(endpoint discoveryv1.Endpoint) bool { return ptr.Deref(endpoint.Conditions.Ready, true) }
	ready := slices.DeleteFunc(controllers, func(slice discoveryv1.EndpointSlice) bool {
		return !slices.ContainsFunc(slice.Endpoints, isReady)
	})

	return portsOf(ready)[ports[at].Name] != nil, err
}
