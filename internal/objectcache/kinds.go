package objectcache

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/example/nginx-operator/internal/cached"
	"github.com/example/nginx-operator/internal/nginxlog"
	"github.com/example/nginx-operator/internal/wellknown"
)

// slimReplicaSet keeps the ports only if the ReplicaSet has replicas.
func slimReplicaSet(replicaSet *appsv1.ReplicaSet) {
	identity := identityOf(&replicaSet.ObjectMeta)
	identity.Labels = pick(replicaSet.Labels, maxName, selectors...)
	identity.Annotations = pick(replicaSet.Annotations, maxNumberText, numbers...)
	template := cached.TemplateOf(replicaSet)
	cached.KeepMounts(&identity, template)
	if ptr.Deref(replicaSet.Spec.Replicas, 0) > 0 {
		cached.KeepPorts(&identity, template.Annotations, &template.Spec)
	}

	*replicaSet = appsv1.ReplicaSet{ObjectMeta: identity, Spec: appsv1.ReplicaSetSpec{Replicas: replicaSet.Spec.Replicas}}
}

// slimPod keeps the ports of a Pod, whether the Pod can read Secrets, and the reasons why the Pod
// is not ready: its conditions and the states of its containers.
func slimPod(pod *corev1.Pod) {
	identity := identityOf(&pod.ObjectMeta)
	identity.Labels = pick(pod.Labels, maxName, selectors...)
	cached.KeepPorts(&identity, pod.Annotations, &pod.Spec)
	if cached.MaySeeSecrets(pod) {
		metav1.SetMetaDataAnnotation(&identity, cached.AnnotationSecrets, "")
	}

	*pod = corev1.Pod{
		ObjectMeta: identity,
		Status: corev1.PodStatus{
			Phase:                 pod.Status.Phase,
			Conditions:            slimConditions(pod.Status.Conditions),
			ContainerStatuses:     slimContainers(pod.Status.ContainerStatuses),
			InitContainerStatuses: slimContainers(pod.Status.InitContainerStatuses),
		},
	}
}

func slimConditions(conditions []corev1.PodCondition) []corev1.PodCondition {
	var out []corev1.PodCondition
	for _, condition := range conditions[:min(len(conditions), maxConditions)] {
		if condition.Type != corev1.PodReady && condition.Type != corev1.PodScheduled {
			continue
		}

		kept := corev1.PodCondition{Type: condition.Type, Status: condition.Status}
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			kept.Reason, kept.Message = condition.Reason, condition.Message
			cut(maxText, &kept.Reason, &kept.Message)
		}

		out = append(out, kept)
	}

	return out
}

func slimContainers(statuses []corev1.ContainerStatus) []corev1.ContainerStatus {
	var out []corev1.ContainerStatus
	for _, status := range statuses[:min(len(statuses), maxContainers)] {
		kept := corev1.ContainerStatus{
			Name: status.Name, Image: status.Image, Ready: status.Ready, Started: status.Started, RestartCount: status.RestartCount,
			State: slimState(status.State), LastTerminationState: slimState(status.LastTerminationState),
		}
		cut(maxText, &kept.Image)
		out = append(out, kept)
	}
	return out
}

// slimState keeps why a container waits or has ended, with one line of a log.
func slimState(state corev1.ContainerState) corev1.ContainerState {
	var out corev1.ContainerState
	if state.Running != nil {
		out.Running = &corev1.ContainerStateRunning{StartedAt: state.Running.StartedAt}
	}
	if waiting := state.Waiting; waiting != nil {
		out.Waiting = &corev1.ContainerStateWaiting{Reason: waiting.Reason, Message: waiting.Message}
		cut(maxText, &out.Waiting.Reason, &out.Waiting.Message)
	}

	if ended := state.Terminated; ended != nil {
		message := ended.Message
		cut(maxText, &message)
		out.Terminated = &corev1.ContainerStateTerminated{ExitCode: ended.ExitCode, Reason: ended.Reason, Message: nginxlog.TellingLine(message)}
		cut(maxText, &out.Terminated.Reason)
	}

	return out
}

// slimDeployment keeps the number of replicas, the number of the revision, the ID of the Pods, the
// names that an earlier release gave them, the hash of the certificates that Pods mount, the names
// of the objects that Pods need, whether the rollout is paused, and the status.
func slimDeployment(deployment *appsv1.Deployment) {
	labels := pick(deployment.Labels, maxNumberText, wellknown.LabelRecord)
	annotations := pick(deployment.Annotations, maxNumberText, numbers...)
	first, _, _ := strings.Cut(deployment.Annotations[wellknown.AnnotationFirstDeclaration], " ")
	slimChild(deployment)
	deployment.Labels, deployment.Annotations = labels, annotations
	if first != "" && len(first) <= maxNumberText {
		metav1.SetMetaDataAnnotation(&deployment.ObjectMeta, wellknown.AnnotationFirstDeclaration, strings.Clone(first))
	}

	template := deployment.Spec.Template
	deployment.Spec = appsv1.DeploymentSpec{Replicas: deployment.Spec.Replicas, Paused: deployment.Spec.Paused}
	deployment.Spec.Template.Annotations = pick(template.Annotations, maxNumberText, wellknown.AnnotationCertificates)
	deployment.Spec.Template.Spec = cached.ReferencesOf(&template.Spec).PodSpec()

	conditions := deployment.Status.Conditions
	deployment.Status.Conditions = nil
	for _, condition := range conditions[:min(len(conditions), maxConditions)] {
		if condition.Type == appsv1.DeploymentProgressing || condition.Type == appsv1.DeploymentReplicaFailure {
			cut(maxText, &condition.Reason, &condition.Message)
			deployment.Status.Conditions = append(deployment.Status.Conditions, condition)
		}
	}
}

const (
	// maxParents bounds the parent statuses of an HTTPRoute, as the schema bounds the Gateways.
	maxParents = 8
	// maxMessage and maxReason bound the fields of a condition.
	maxMessage, maxReason = 256, 64
)

func slimHTTPRoute(route *gatewayv1.HTTPRoute) {
	slimChild(route)
	spec := gatewayv1.HTTPRouteSpec{}
	if number := cached.RoutePort(route); number != 0 {
		spec.Rules = ruleTo(number)
	}

	var parents []gatewayv1.RouteParentStatus
	for _, parent := range route.Status.Parents {
		if len(parents) == maxParents {
			break
		}
		if kept, ok := slimParent(parent); ok {
			parents = append(parents, kept)
		}
	}

	route.Spec, route.Status.Parents = spec, parents
}

func slimParent(parent gatewayv1.RouteParentStatus) (gatewayv1.RouteParentStatus, bool) {
	of := parent.ParentRef
	namespace, section := ptr.Deref(of.Namespace, ""), ptr.Deref(of.SectionName, "")
	if ptr.Deref(of.Group, gatewayv1.GroupName) != gatewayv1.GroupName || ptr.Deref(of.Kind, "Gateway") != "Gateway" ||
		max(len(of.Name), len(namespace), len(section)) > maxName {
		return gatewayv1.RouteParentStatus{}, false
	}

	out := gatewayv1.RouteParentStatus{ParentRef: gatewayv1.ParentReference{
		Name: of.Name, Namespace: of.Namespace, SectionName: of.SectionName, Port: of.Port,
	}}

	for _, about := range []gatewayv1.RouteConditionType{gatewayv1.RouteConditionAccepted, gatewayv1.RouteConditionResolvedRefs} {
		condition := meta.FindStatusCondition(parent.Conditions[:min(len(parent.Conditions), maxConditions)], string(about))
		if condition == nil {
			continue
		}

		kept := metav1.Condition{
			Type: string(about), Status: condition.Status, Reason: condition.Reason, Message: condition.Message,
			ObservedGeneration: condition.ObservedGeneration,
		}

		cut(maxReason, &kept.Reason)
		cut(maxMessage, &kept.Message)
		out.Conditions = append(out.Conditions, kept)
	}

	return out, true
}

func ruleTo(number int32) []gatewayv1.HTTPRouteRule {
	backend := gatewayv1.HTTPBackendRef{}
	backend.Port = &number
	return []gatewayv1.HTTPRouteRule{{BackendRefs: []gatewayv1.HTTPBackendRef{backend}}}
}

const maxBalancers = 16

func slimIngress(ingress *networkingv1.Ingress) {
	slimChild(ingress)
	spec := slimRules(ingress)
	var points []networkingv1.IngressLoadBalancerIngress
	for _, point := range ingress.Status.LoadBalancer.Ingress[:min(len(ingress.Status.LoadBalancer.Ingress), maxBalancers)] {
		if len(point.IP) <= maxName && len(point.Hostname) <= maxName {
			points = append(points, networkingv1.IngressLoadBalancerIngress{IP: point.IP, Hostname: point.Hostname})
		}
	}

	ingress.Spec, ingress.Status.LoadBalancer.Ingress = spec, points
}

// slimRules keeps the port of the backend, in the field from which BackendPort reads it.
func slimRules(ingress *networkingv1.Ingress) networkingv1.IngressSpec {
	number := cached.BackendPort(ingress)
	switch {
	case number == 0:
		return networkingv1.IngressSpec{}
	case cached.FirstPath(ingress) == nil:
		return networkingv1.IngressSpec{DefaultBackend: backendOn(number)}
	}

	paths := []networkingv1.HTTPIngressPath{{Backend: *backendOn(number)}}
	return networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{{
		IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{Paths: paths}},
	}}}
}

func backendOn(number int32) *networkingv1.IngressBackend {
	return &networkingv1.IngressBackend{
		Service: &networkingv1.IngressServiceBackend{Port: networkingv1.ServiceBackendPort{Number: number}},
	}
}

func slimService(service *corev1.Service) {
	slimChild(service)
	spec := corev1.ServiceSpec{}
	for _, port := range service.Spec.Ports[:min(len(service.Spec.Ports), cached.MaxPorts)] {
		kept := corev1.ServicePort{Name: port.Name, Port: port.Port, NodePort: port.NodePort}
		if port.AppProtocol != nil && len(*port.AppProtocol) <= maxName {
			kept.AppProtocol = port.AppProtocol
		}
		spec.Ports = append(spec.Ports, kept)
	}

	addresses := cached.BalancerAddresses(service)
	if addresses != nil {
		spec.Type = corev1.ServiceTypeLoadBalancer
	}

	service.Spec, service.Status = spec, corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: addresses}}
}

func slimEndpointSlice(slice *discoveryv1.EndpointSlice) {
	labels := pick(slice.Labels, maxName, discoveryv1.LabelServiceName, discoveryv1.LabelManagedBy)
	slimChild(slice)
	slice.Labels = labels
	slice.Endpoints, slice.Ports = nil, slice.Ports[:min(len(slice.Ports), cached.MaxPorts)]
}
