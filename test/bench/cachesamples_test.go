//go:build bench

package bench

import (
	"fmt"
	"strings"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/cached"
	"github.com/example/nginx-operator/internal/wellknown"
)

// number is in the name and the UID of a sample. The server replaces it with the number of the
// object.
const number = "NUMBER7"

// sampleObject has an object as the operator creates it, and the largest one.
type sampleObject struct{ small, largest client.Object }

// sampleObjects returns the samples of each kind in the cache.
func sampleObjects() map[string]sampleObject {
	of := func(small, largest client.Object) sampleObject {
		small.SetLabels(wellknown.PodLabels("web-" + number))
		small.SetOwnerReferences([]metav1.OwnerReference{{
			APIVersion: v1alpha2.GroupVersion.String(), Kind: "NginxOperator", Name: "web-" + number, UID: "u", Controller: ptr.To(true),
		}})
		named(small, "web-")
		long := strings.Repeat("x", 253-len(number))
		labels := wellknown.PodLabels(strings.Repeat("x", 63))
		labels[wellknown.LabelRecord] = strings.Repeat("x", 63)
		labels[discoveryv1.LabelManagedBy], labels[discoveryv1.LabelServiceName] = wellknown.OperatorName, strings.Repeat("x", 63)
		largest.SetLabels(labels)
		largest.SetOwnerReferences([]metav1.OwnerReference{{
			APIVersion: v1alpha2.GroupVersion.Group + "/" + strings.Repeat("v", 253-1-len(v1alpha2.GroupVersion.Group)), Kind: "NginxOperator",
			Name: long + number, UID: "u", Controller: ptr.To(true),
		}})
		annotations := map[string]string{
			"theirs": strings.Repeat("x", 200<<10), wellknown.AnnotationServicePorts: strings.Repeat("x", 1024),
			wellknown.AnnotationReplicas: strings.Repeat("1", 64), wellknown.AnnotationContent: strings.Repeat("1", 64),
		}
		largest.SetAnnotations(annotations)
		named(largest, long)
		largest.SetNamespace(strings.Repeat("n", 63))
		return sampleObject{small, largest}
	}
	return map[string]sampleObject{
		"nginxoperators": of(smallInstance(), largestInstance()), "replicasets": of(&appsv1.ReplicaSet{}, largestReplicaSet()),
		"pods": of(smallPod(), largestPod()), "deployments": of(&appsv1.Deployment{}, largestDeployment()),
		"services": of(&corev1.Service{}, largestService()), "endpointslices": of(&discoveryv1.EndpointSlice{}, largestSlice()),
		"ingresses": of(&networkingv1.Ingress{}, largestIngress()), "configmaps": of(&corev1.ConfigMap{}, largestConfigMap()),
		"controllerrevisions":      of(&appsv1.ControllerRevision{}, &appsv1.ControllerRevision{}),
		"networkpolicies":          of(&networkingv1.NetworkPolicy{}, &networkingv1.NetworkPolicy{}),
		"poddisruptionbudgets":     of(&policyv1.PodDisruptionBudget{}, &policyv1.PodDisruptionBudget{}),
		"horizontalpodautoscalers": of(&autoscalingv2.HorizontalPodAutoscaler{}, &autoscalingv2.HorizontalPodAutoscaler{}),
		"httproutes":               of(&gatewayv1.HTTPRoute{}, largestRoute()),
		"podmonitors":              of(&monitoringv1.PodMonitor{}, &monitoringv1.PodMonitor{}),
		"prometheusrules":          of(&monitoringv1.PrometheusRule{}, &monitoringv1.PrometheusRule{}),
	}
}

func named(object client.Object, prefix string) {
	object.SetNamespace("shop")
	object.SetName(prefix + number)
	object.SetUID("01234567-89ab-cdef-0123-45678" + number)
	object.SetResourceVersion("1234567")
	object.SetCreationTimestamp(metav1.Unix(1_800_000_000, 0))
}

func smallInstance() *v1alpha2.NginxOperator {
	out := &v1alpha2.NginxOperator{}
	out.Spec.Replicas = ptr.To[int32](2)
	out.Spec.Content = &v1alpha2.Content{ConfigMapRef: v1alpha2.ConfigMapReference{Name: "page"}}
	out.Spec.TLS = []v1alpha2.TLS{{SecretName: "certificate"}}
	out.Status.Conditions = []metav1.Condition{
		{Type: v1alpha2.ConditionReady, Status: metav1.ConditionTrue, Reason: "Ready", Message: "2 of 2 replicas are ready"},
	}
	out.Status.Certificates = []v1alpha2.Certificate{{NotAfter: metav1.Unix(1_900_000_000, 0)}}
	return out
}

// largestInstance returns an NginxOperator with as many references and as long texts as the API
// server stores.
func largestInstance() *v1alpha2.NginxOperator {
	out := smallInstance()
	out.Spec.Config = &v1alpha2.Config{Inline: strings.Repeat("x", 62<<10)}
	for i := range 200 {
		out.Spec.Env = append(out.Spec.Env, v1alpha2.EnvVar{Name: fmt.Sprint("V", i), Value: strings.Repeat("x", 4096)},
			v1alpha2.EnvVar{Name: fmt.Sprint("R", i), ValueFrom: &v1alpha2.EnvVarSource{
				ConfigMapKeyRef: &v1alpha2.KeyReference{Name: fmt.Sprint(strings.Repeat("x", 240), i), Key: "key"},
			}})
	}
	for _, reason := range cached.BlockingReasons() {
		out.Status.BlockedBy = append(out.Status.BlockedBy, v1alpha2.Blocker{Reason: reason, Message: strings.Repeat("x", 4096)})
	}
	for range 15 {
		out.Status.Certificates = append(out.Status.Certificates, out.Status.Certificates[0])
	}
	return out
}

func smallPod() *corev1.Pod {
	ports := []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}, {Name: "health", ContainerPort: 8081}}
	ready := corev1.ContainerStatus{
		Name: wellknown.OperandContainer, Image: "docker.io/nginxinc/nginx-unprivileged:1.29.4", Ready: true, Started: ptr.To(true),
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Unix(1_800_000_000, 0)}},
	}
	return &corev1.Pod{
		Spec:   corev1.PodSpec{Containers: []corev1.Container{{Name: wellknown.OperandContainer, Ports: ports}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{ready}},
	}
}

// manyPorts returns ports of a container with the longest names.
func manyPorts() []corev1.ContainerPort {
	var out []corev1.ContainerPort
	for i := range int32(100) {
		out = append(out, corev1.ContainerPort{Name: fmt.Sprintf("port-%010d", i), ContainerPort: 60_000 + i})
	}
	return out
}

func largestPod() *corev1.Pod {
	out := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: wellknown.OperandContainer, Ports: manyPorts()}}}}
	text := strings.Repeat("x", 4096)
	for i := range 64 {
		ended := &corev1.ContainerStateTerminated{ExitCode: 1, Reason: text, Message: text}
		status := corev1.ContainerStatus{
			Name: fmt.Sprint("container-", i), Image: text, State: corev1.ContainerState{
				Waiting: &corev1.ContainerStateWaiting{Reason: text, Message: text},
			}, LastTerminationState: corev1.ContainerState{Terminated: ended},
		}
		out.Status.ContainerStatuses = append(out.Status.ContainerStatuses, status)
		out.Status.InitContainerStatuses = append(out.Status.InitContainerStatuses, status)
	}
	return out
}

// largestReplicaSet returns a ReplicaSet with 320 mounted ConfigMaps.
func largestReplicaSet() *appsv1.ReplicaSet {
	out := &appsv1.ReplicaSet{Spec: appsv1.ReplicaSetSpec{Replicas: ptr.To[int32](1)}}
	out.Spec.Template.Spec.Containers = []corev1.Container{{Name: wellknown.OperandContainer, Ports: manyPorts()}}
	for i := range 20 {
		volume := corev1.Volume{Name: fmt.Sprint("volume-", i), VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}}
		for j := range 16 {
			name := corev1.LocalObjectReference{Name: fmt.Sprintf("%s-%03d", strings.Repeat("x", 240), 16*i+j)}
			volume.Projected.Sources = append(volume.Projected.Sources,
				corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: name}})
		}
		out.Spec.Template.Spec.Volumes = append(out.Spec.Template.Spec.Volumes, volume)
	}
	return out
}

func largestDeployment() *appsv1.Deployment {
	out := &appsv1.Deployment{}
	for _, about := range []appsv1.DeploymentConditionType{appsv1.DeploymentProgressing, appsv1.DeploymentReplicaFailure} {
		out.Status.Conditions = append(out.Status.Conditions, appsv1.DeploymentCondition{
			Type: about, Reason: strings.Repeat("x", 4096), Message: strings.Repeat("x", 32<<10),
		})
	}
	return out
}

func largestService() *corev1.Service {
	out := &corev1.Service{Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer}}
	for i := range int32(100) {
		out.Spec.Ports = append(out.Spec.Ports, corev1.ServicePort{
			Name: fmt.Sprintf("%s-%03d", strings.Repeat("p", 59), i), Port: 60_000 + i, NodePort: 30_000 + i,
			AppProtocol: ptr.To(strings.Repeat("x", 253)),
		})
		out.Status.LoadBalancer.Ingress = append(out.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{Hostname: strings.Repeat("x", 253)})
	}
	return out
}

func largestSlice() *discoveryv1.EndpointSlice {
	out := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4}
	for i := range int32(100) {
		out.Ports = append(out.Ports, discoveryv1.EndpointPort{
			Name: ptr.To(fmt.Sprintf("%s-%03d", strings.Repeat("p", 59), i)), Port: ptr.To(60_000 + i),
			AppProtocol: ptr.To(strings.Repeat("x", 253)),
		})
	}
	return out
}

func largestIngress() *networkingv1.Ingress {
	out := &networkingv1.Ingress{}
	for range 100 {
		point := networkingv1.IngressLoadBalancerIngress{IP: strings.Repeat("1", 45), Hostname: strings.Repeat("x", 253)}
		out.Status.LoadBalancer.Ingress = append(out.Status.LoadBalancer.Ingress, point)
	}
	return out
}

func largestConfigMap() *corev1.ConfigMap {
	return &corev1.ConfigMap{Data: map[string]string{"key": strings.Repeat("x", 900<<10)}}
}

func largestRoute() *gatewayv1.HTTPRoute {
	out := &gatewayv1.HTTPRoute{}
	for range 32 {
		parent := gatewayv1.RouteParentStatus{ParentRef: gatewayv1.ParentReference{
			Name: gatewayv1.ObjectName(strings.Repeat("x", 253)), Namespace: ptr.To(gatewayv1.Namespace(strings.Repeat("x", 63))),
			SectionName: ptr.To(gatewayv1.SectionName(strings.Repeat("x", 253))),
		}}
		for _, about := range []string{"Accepted", "ResolvedRefs"} {
			parent.Conditions = append(parent.Conditions,
				metav1.Condition{Type: about, Reason: strings.Repeat("x", 1024), Message: strings.Repeat("x", 32<<10)})
		}
		out.Status.Parents = append(out.Status.Parents, parent)
	}
	return out
}
