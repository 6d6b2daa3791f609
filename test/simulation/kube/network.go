package kube

import (
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/test/simulation/storage"
)

// scale replaces the HorizontalPodAutoscaler controller: it scales a Deployment to the bounds.
func (k *Kube) scale(hpa *autoscalingv2.HorizontalPodAutoscaler) {
	key := storage.Key{Resource: storage.Deployments, Namespace: hpa.Namespace, Name: hpa.Spec.ScaleTargetRef.Name}
	target := k.Store.Get(key)
	if target == nil || hpa.DeletionTimestamp != nil {
		return
	}
	d := storage.As[appsv1.Deployment](target)
	if *d.Spec.Replicas == 0 {
		return // an autoscaler does not change a Deployment that is scaled to zero
	}
	want := min(max(*d.Spec.Replicas, ptr.Deref(hpa.Spec.MinReplicas, 1)), hpa.Spec.MaxReplicas)
	if want != *d.Spec.Replicas {
		d.Spec.Replicas = ptr.To(want)
		k.write(storage.Deployments, d, "scale")
	}
}

// endpointSliceController is the value of the managed-by label.
const endpointSliceController = "endpointslice-controller.k8s.io"

// endpoints maintains one EndpointSlice of a Service for each set of names and numbers of the ports
// of its Pods.
func (k *Kube) endpoints(service *corev1.Service) {
	if len(service.Spec.Selector) == 0 || service.DeletionTimestamp != nil {
		return
	}
	want := map[string]*discoveryv1.EndpointSlice{}
	selector := labels.SelectorFromSet(service.Spec.Selector)
	for _, one := range k.Store.List(storage.Pods, service.Namespace) {
		pod := storage.As[corev1.Pod](one)
		if selector.Matches(labels.Set(pod.Labels)) && pod.Spec.NodeName != "" {
			k.addEndpoint(want, service, pod)
		}
	}
	for _, one := range k.Store.List(storage.EndpointSlices, service.Namespace) {
		live := storage.As[discoveryv1.EndpointSlice](one)
		if live.Labels[discoveryv1.LabelServiceName] != service.Name || live.Labels[discoveryv1.LabelManagedBy] != endpointSliceController {
			continue
		}
		wanted := want[live.Name]
		delete(want, live.Name)
		switch {
		case wanted == nil:
			k.remove(storage.EndpointSlices, live, true)
		case !equality.Semantic.DeepEqual(live.Endpoints, wanted.Endpoints) || !equality.Semantic.DeepEqual(live.Ports, wanted.Ports):
			live.Endpoints, live.Ports = wanted.Endpoints, wanted.Ports
			k.write(storage.EndpointSlices, live, "")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		k.create(storage.EndpointSlices, want[name])
	}
}

func (k *Kube) addEndpoint(want map[string]*discoveryv1.EndpointSlice, service *corev1.Service, pod *corev1.Pod) {
	var ports []discoveryv1.EndpointPort
	name := service.Name
	for _, port := range service.Spec.Ports {
		number := targetOf(port.TargetPort, pod)
		if number == 0 {
			continue
		}
		ports = append(ports, discoveryv1.EndpointPort{Name: ptr.To(port.Name), Port: ptr.To(number), Protocol: ptr.To(port.Protocol)})
		name += fmt.Sprintf("-%s-%d", port.Name, number)
	}
	slice := want[name]
	if slice == nil {
		slice = &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4, Ports: ports}
		slice.Namespace, slice.Name = service.Namespace, name
		slice.Labels = maps.Clone(service.Labels)
		metav1.SetMetaDataLabel(&slice.ObjectMeta, discoveryv1.LabelServiceName, service.Name)
		metav1.SetMetaDataLabel(&slice.ObjectMeta, discoveryv1.LabelManagedBy, endpointSliceController)
		slice.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(service, corev1.SchemeGroupVersion.WithKind("Service"))}
		want[name] = slice
	}
	ready := rank(pod) == 0 && pod.DeletionTimestamp == nil
	slice.Ports = ports
	slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
		Addresses: []string{"10.0.0.1"}, Conditions: discoveryv1.EndpointConditions{Ready: &ready},
		TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
	})
}

func targetOf(target intstr.IntOrString, pod *corev1.Pod) int32 {
	if target.Type == intstr.Int {
		return target.IntVal
	}
	for i := range pod.Spec.Containers {
		for _, port := range pod.Spec.Containers[i].Ports {
			if port.Name == target.StrVal {
				return port.ContainerPort
			}
		}
	}
	return 0
}
