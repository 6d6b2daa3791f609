package operatormanager

import (
	"slices"
	"strings"
	"unique"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/apply"
	"github.com/example/nginx-operator/internal/wellknown"
)

// The functions of this file take from an object, before it enters the cache, what no reader of the cache looks at. Anybody can
// make objects with our labels. So each function takes time in proportion to the size of the object at most, what it keeps is
// bounded, and nothing that an object says of itself is interpreted. They pass anything else through (the cache also hands over
// tombstones).

const (
	// maxText is the longest message of a container that a kubelet writes.
	maxText = 4096
	// maxConditions, maxContainers and maxVolumes are above what a Pod of ours has, and bound what is kept of others.
	maxConditions = 16
	maxContainers = 32
	maxVolumes    = 32
	// maxName and maxUID bound what an owner reference may say.
	maxName = 253
	maxUID  = 64
	// maxNumberText is what an int64 needs.
	maxNumberText = 20
	// maxPorts is how many ports of one object are kept: an instance has 16 plain ones, 16 with a certificate, and one for probes,
	// and while it moves it may have those of two declarations.
	maxPorts = 66
	// MaxServicePorts bounds the annotation with the numbers of the Service: 32 container ports, each with a name and a number.
	MaxServicePorts = 1024
)

// slimNginxOperator keeps what a reconcile reads: the declaration, the status, and of the metadata what identifies the object,
// whether it could be read whole, and whether it is a canary. An annotation like that of kubectl apply is as large as all the rest.
func slimNginxOperator(in any) (any, error) {
	object, ok := in.(*v1alpha2.NginxOperator)
	if !ok {
		return in, nil
	}
	_, isUnreadable := object.Annotations[wellknown.AnnotationV1alpha2Unreadable]
	isCanary := wellknown.IsCanary(object.Labels)
	object.ManagedFields, object.Annotations, object.Labels, object.OwnerReferences, object.Finalizers = nil, nil, nil, nil, nil
	if isUnreadable {
		object.Annotations = map[string]string{wellknown.AnnotationV1alpha2Unreadable: ""}
	}
	if isCanary {
		object.Labels = canaryLabels
	}
	share(&object.Namespace, &object.Name, &object.Status.Image)
	if good := object.Status.LastGoodRevision; good != nil {
		share(&good.Image, &good.ConfigHash)
	}
	// A decoder leaves room for more.
	object.Status.Conditions, object.Status.RelatedObjects = slices.Clone(object.Status.Conditions), slices.Clone(object.Status.RelatedObjects)
	for i := range object.Status.Conditions {
		condition := &object.Status.Conditions[i]
		share(&condition.Type, &condition.Reason, &condition.Message)
		condition.Status = unique.Make(condition.Status).Value()
	}
	for i := range object.Status.RelatedObjects {
		related := &object.Status.RelatedObjects[i]
		share(&related.APIVersion, &related.Kind, &related.Name)
	}
	return in, nil
}

// canaryLabels are shared by all canaries: nobody writes to what is in the cache.
var canaryLabels = map[string]string{wellknown.LabelCanary: "true"}

// slimCRD keeps the name: a change of the CRD is what matters, and who looks closer asks the API server.
func slimCRD(in any) (any, error) {
	if crd, ok := in.(*apiextensionsv1.CustomResourceDefinition); ok {
		crd.ManagedFields, crd.Annotations = nil, nil
		crd.Spec, crd.Status = apiextensionsv1.CustomResourceDefinitionSpec{}, apiextensionsv1.CustomResourceDefinitionStatus{}
	}
	return in, nil
}

// share puts one text in the place of all that are equal. Most of what the cache holds says the same of many objects.
func share(texts ...*string) {
	for _, text := range texts {
		*text = unique.Make(*text).Value()
	}
}

// AnnotationRevision is on a Deployment and on its ReplicaSets, and tells which of these is the newest: the Deployment controller
// counts revisions there.
const AnnotationRevision = "deployment.kubernetes.io/revision"

// slimDeployment keeps the number of replicas and whether somebody used the scale subresource to set it, the number of the revision,
// and the status.
func slimDeployment(in any) (any, error) {
	deployment, ok := in.(*appsv1.Deployment)
	if !ok {
		return in, nil
	}
	annotations := numbersOf(deployment.Annotations)
	scaled := slices.ContainsFunc(deployment.ManagedFields, SetsReplicasByScale)
	slimChild(deployment, &deployment.ObjectMeta)
	deployment.Annotations = annotations
	if scaled {
		deployment.ManagedFields = scaledReplicas
	}
	deployment.Spec = appsv1.DeploymentSpec{Replicas: deployment.Spec.Replicas}
	conditions := deployment.Status.Conditions
	deployment.Status.Conditions = slices.Clip(conditions[:min(len(conditions), maxConditions)])
	for i := range deployment.Status.Conditions {
		condition := &deployment.Status.Conditions[i]
		cut(&condition.Reason, &condition.Message)
	}
	return in, nil
}

// numbersOf returns those annotations that are read, nil where there is none.
func numbersOf(annotations map[string]string) map[string]string {
	var out map[string]string
	for _, key := range []string{wellknown.AnnotationReplicas, AnnotationRevision} {
		if value, found := annotations[key]; found && len(value) <= maxNumberText {
			if out == nil {
				out = map[string]string{}
			}
			share(&value)
			out[key] = value
		}
	}
	return out
}

// scaledReplicas stands for the entries of managedFields that say of spec.replicas that the scale subresource set it.
var scaledReplicas = []metav1.ManagedFieldsEntry{{
	Subresource: "scale", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:replicas":{}}}`),
}}

// SetsReplicasByScale reports whether a field manager set spec.replicas through the scale subresource, which the operator never
// uses. It says so of what the cache keeps in its place as well.
func SetsReplicasByScale(entry metav1.ManagedFieldsEntry) bool {
	return entry.Subresource == "scale" && entry.FieldsV1 != nil && strings.Contains(entry.FieldsV1.GetRawString(), `"f:replicas"`)
}

func slimConfigMap(in any) (any, error) {
	if configMap, ok := in.(*corev1.ConfigMap); ok {
		slimChild(configMap, &configMap.ObjectMeta)
		configMap.Data, configMap.BinaryData = nil, nil
	}
	return in, nil
}

// slimControllerRevision keeps the number of the revision.
func slimControllerRevision(in any) (any, error) {
	if revision, ok := in.(*appsv1.ControllerRevision); ok {
		slimChild(revision, &revision.ObjectMeta)
		revision.Data = runtime.RawExtension{}
	}
	return in, nil
}

// maxIngress is how many addresses of a load balancer are kept: as many as a status of ours has.
const maxIngress = 16

// slimService keeps the names and numbers of the ports, and the addresses of the load balancer.
func slimService(in any) (any, error) {
	if service, ok := in.(*corev1.Service); ok {
		slimChild(service, &service.ObjectMeta)
		var ports []corev1.ServicePort
		for _, port := range service.Spec.Ports[:min(len(service.Spec.Ports), maxPorts)] {
			protocol := port.AppProtocol
			if protocol != nil && len(*protocol) > maxName {
				protocol = nil
			}
			share(&port.Name)
			ports = append(ports, corev1.ServicePort{Name: port.Name, Port: port.Port, NodePort: port.NodePort, AppProtocol: protocol})
		}
		ingress := slimLoadBalancer(service)
		spec := corev1.ServiceSpec{Ports: slices.Clip(ports)}
		if ingress != nil {
			spec.Type = corev1.ServiceTypeLoadBalancer
		}
		service.Spec, service.Status = spec, corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: ingress}}
	}
	return in, nil
}

// slimLoadBalancer returns its addresses, nil where the Service asks for none or has not got it yet.
func slimLoadBalancer(service *corev1.Service) []corev1.LoadBalancerIngress {
	all := service.Status.LoadBalancer.Ingress
	if service.Spec.Type != corev1.ServiceTypeLoadBalancer {
		return nil
	}
	var out []corev1.LoadBalancerIngress
	for _, at := range all[:min(len(all), maxIngress)] {
		if max(len(at.IP), len(at.Hostname)) <= maxName {
			out = append(out, corev1.LoadBalancerIngress{IP: at.IP, Hostname: at.Hostname})
		}
	}
	return slices.Clip(out)
}

// slimEndpointSlice keeps the ports, and the Service that they are of.
func slimEndpointSlice(in any) (any, error) {
	if slice, ok := in.(*discoveryv1.EndpointSlice); ok {
		service := slice.Labels[discoveryv1.LabelServiceName]
		slimChild(slice, &slice.ObjectMeta)
		slice.Labels = map[string]string{discoveryv1.LabelServiceName: service, discoveryv1.LabelManagedBy: wellknown.OperatorName}
		slice.Endpoints, slice.Ports = nil, slices.Clip(slice.Ports[:min(len(slice.Ports), maxPorts)])
	}
	return in, nil
}

func slimNetworkPolicy(in any) (any, error) {
	if policy, ok := in.(*networkingv1.NetworkPolicy); ok {
		slimChild(policy, &policy.ObjectMeta)
		policy.Spec = networkingv1.NetworkPolicySpec{}
	}
	return in, nil
}

func slimPodDisruptionBudget(in any) (any, error) {
	if budget, ok := in.(*policyv1.PodDisruptionBudget); ok {
		slimChild(budget, &budget.ObjectMeta)
		budget.Spec, budget.Status = policyv1.PodDisruptionBudgetSpec{}, policyv1.PodDisruptionBudgetStatus{}
	}
	return in, nil
}

func slimAutoscaler(in any) (any, error) {
	if autoscaler, ok := in.(*autoscalingv2.HorizontalPodAutoscaler); ok {
		slimChild(autoscaler, &autoscaler.ObjectMeta)
		autoscaler.Spec, autoscaler.Status = autoscalingv2.HorizontalPodAutoscalerSpec{}, autoscalingv2.HorizontalPodAutoscalerStatus{}
	}
	return in, nil
}

// slimChild keeps of a child's metadata what identifies it, and the fingerprint of all of it, by which a reconcile sees whether it has
// changed since it was looked at. It has to be called while the child is whole. What no NginxOperator controls is none of our
// children and has no fingerprint.
func slimChild(child client.Object, meta *metav1.ObjectMeta) {
	owners := controllerOf(meta)
	if isOurs(owners) {
		apply.Stamp(child)
	}
	stamp := child.GetSelfLink()
	identify(meta, owners)
	child.SetSelfLink(stamp)
}

// identify keeps of the metadata what identifies the object.
func identify(meta *metav1.ObjectMeta, owners []metav1.OwnerReference) {
	share(&meta.Namespace, &meta.Name)
	*meta = metav1.ObjectMeta{
		Namespace: meta.Namespace, Name: meta.Name, UID: meta.UID, ResourceVersion: meta.ResourceVersion, Generation: meta.Generation,
		CreationTimestamp: meta.CreationTimestamp, DeletionTimestamp: meta.DeletionTimestamp, OwnerReferences: owners,
	}
}

// controllerOf returns the reference to the owner that controls an object; one that no owner could have does not count.
func controllerOf(meta *metav1.ObjectMeta) []metav1.OwnerReference {
	owner := metav1.GetControllerOfNoCopy(meta)
	if owner == nil || max(len(owner.APIVersion), len(owner.Kind), len(owner.Name)) > maxName || len(owner.UID) > maxUID {
		return nil
	}
	out := metav1.OwnerReference{
		APIVersion: owner.APIVersion, Kind: owner.Kind, Name: owner.Name, UID: unique.Make(owner.UID).Value(), Controller: isController,
	}
	share(&out.APIVersion, &out.Kind, &out.Name)
	return []metav1.OwnerReference{out}
}

var isController = ptr.To(true)

// isOurs reports whether the controller is a NginxOperator, of whatever version.
func isOurs(owners []metav1.OwnerReference) bool {
	if len(owners) == 0 {
		return false
	}
	version, err := schema.ParseGroupVersion(owners[0].APIVersion)
	return err == nil && version.Group == v1alpha2.GroupVersion.Group && owners[0].Kind == "NginxOperator"
}

// selectorOf returns those of the labels by which the Pods of an instance and their revisions are told from others.
func selectorOf(labels map[string]string) map[string]string {
	out := map[string]string{}
	for _, key := range []string{
		wellknown.LabelName, wellknown.LabelInstance, wellknown.LabelManagedBy, appsv1.DefaultDeploymentUniqueLabelKey,
	} {
		if value, found := labels[key]; found {
			share(&value)
			out[key] = value
		}
	}
	return out
}

// cut bounds texts, and lets go of the rest.
func cut(texts ...*string) { cutTo(maxText, texts...) }

func cutTo(limit int, texts ...*string) {
	for _, text := range texts {
		if len(*text) > limit {
			*text = strings.Clone(strings.ToValidUTF8((*text)[:limit], ""))
		}
	}
}

// servingContainer keeps the ports of the operand, nil where it has none.
func servingContainer(containers []corev1.Container) []corev1.Container {
	at := slices.IndexFunc(containers, func(container corev1.Container) bool { return container.Name == wellknown.OperandContainer })
	if at < 0 || len(containers[at].Ports) == 0 {
		return nil
	}
	ports := slices.Clone(containers[at].Ports[:min(len(containers[at].Ports), maxPorts)])
	for i := range ports {
		ports[i] = corev1.ContainerPort{Name: ports[i].Name, ContainerPort: ports[i].ContainerPort}
		share(&ports[i].Name)
	}
	return []corev1.Container{{Name: wellknown.OperandContainer, Ports: ports}}
}

// servicePortsOf keeps of the annotations which container ports the Service serves under another number.
func servicePortsOf(annotations map[string]string) map[string]string {
	value, found := annotations[wellknown.AnnotationServicePorts]
	if !found || len(value) > MaxServicePorts {
		return nil
	}
	share(&value)
	return map[string]string{wellknown.AnnotationServicePorts: value}
}

// slimReplicaSet keeps the number of a revision, which ConfigMaps it mounts and, where it wants Pods, on which ports they serve.
func slimReplicaSet(in any) (any, error) {
	replicaSet, ok := in.(*appsv1.ReplicaSet)
	if !ok {
		return in, nil
	}
	labels, annotations := selectorOf(replicaSet.Labels), numbersOf(replicaSet.Annotations)
	identify(&replicaSet.ObjectMeta, controllerOf(&replicaSet.ObjectMeta))
	replicaSet.Labels, replicaSet.Annotations = labels, annotations
	var volumes []corev1.Volume
	keep := func(name string) {
		if len(name) <= maxName && len(volumes) < maxVolumes {
			source := &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}
			volumes = append(volumes, corev1.Volume{VolumeSource: corev1.VolumeSource{ConfigMap: source}})
		}
	}
	for _, volume := range replicaSet.Spec.Template.Spec.Volumes {
		if volume.ConfigMap != nil {
			keep(volume.ConfigMap.Name)
		}
		for _, source := range ptr.Deref(volume.Projected, corev1.ProjectedVolumeSource{}).Sources {
			if source.ConfigMap != nil {
				keep(source.ConfigMap.Name)
			}
		}
	}
	spec := appsv1.ReplicaSetSpec{Replicas: replicaSet.Spec.Replicas}
	spec.Template.Spec.Volumes = volumes
	if ptr.Deref(spec.Replicas, 0) > 0 {
		spec.Template.Annotations = servicePortsOf(replicaSet.Spec.Template.Annotations)
		spec.Template.Spec.Containers = servingContainer(replicaSet.Spec.Template.Spec.Containers)
	}
	replicaSet.Spec = spec
	replicaSet.Status = appsv1.ReplicaSetStatus{}
	return in, nil
}

// slimPod keeps on which ports a Pod serves, whether it mounts files of Secrets, and what tells why it does not serve: its conditions and
// the state of its containers.
func slimPod(in any) (any, error) {
	pod, ok := in.(*corev1.Pod)
	if !ok {
		return in, nil
	}
	labels, annotations := selectorOf(pod.Labels), servicePortsOf(pod.Annotations)
	if _, mountsSecrets := pod.Annotations[wellknown.AnnotationFiles]; mountsSecrets {
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[wellknown.AnnotationFiles] = ""
	}
	identify(&pod.ObjectMeta, controllerOf(&pod.ObjectMeta))
	pod.Labels, pod.Annotations = labels, annotations
	pod.Spec = corev1.PodSpec{NodeName: pod.Spec.NodeName, Containers: servingContainer(pod.Spec.Containers)}
	pod.Status = corev1.PodStatus{
		Phase:                 pod.Status.Phase,
		Reason:                pod.Status.Reason,
		Message:               pod.Status.Message,
		Conditions:            slices.Clip(pod.Status.Conditions[:min(len(pod.Status.Conditions), maxConditions)]),
		ContainerStatuses:     slimContainers(pod.Status.ContainerStatuses),
		InitContainerStatuses: slimContainers(pod.Status.InitContainerStatuses),
	}
	cut(&pod.Status.Reason, &pod.Status.Message)
	for i := range pod.Status.Conditions {
		cut(&pod.Status.Conditions[i].Reason, &pod.Status.Conditions[i].Message)
	}
	return in, nil
}

func slimContainers(statuses []corev1.ContainerStatus) []corev1.ContainerStatus {
	var out []corev1.ContainerStatus
	for _, status := range statuses[:min(len(statuses), maxContainers)] {
		kept := corev1.ContainerStatus{
			Name: status.Name, Image: status.Image, Ready: status.Ready, Started: status.Started, RestartCount: status.RestartCount,
			State: status.State, LastTerminationState: status.LastTerminationState,
		}
		cut(&kept.Image)
		for _, state := range []*corev1.ContainerState{&kept.State, &kept.LastTerminationState} {
			if state.Waiting != nil {
				cut(&state.Waiting.Reason, &state.Waiting.Message)
			}
			if state.Terminated != nil {
				cut(&state.Terminated.Reason, &state.Terminated.Message)
			}
		}
		out = append(out, kept)
	}
	return out
}
