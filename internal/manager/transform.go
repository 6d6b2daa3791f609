package manager

import (
	"maps"
	"slices"
	"unique"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/apply"
	"github.com/example/nginx-operator/internal/metadata"
)

// The functions of this file take from an object, before it enters the cache, what no reader of the cache looks at.
// They pass anything else through (the cache also hands over tombstones).

// slimNginxOperator keeps what a pass reads: the declaration, the status, and of the metadata what identifies the object and
// whether it could be read whole. An annotation like that of kubectl apply is as large as all the rest.
func slimNginxOperator(in any) (any, error) {
	object, ok := in.(*v1alpha2.NginxOperator)
	if !ok {
		return in, nil
	}
	unreadable, isUnreadable := object.Annotations[metadata.AnnotationV1alpha2Unreadable]
	object.ManagedFields, object.Annotations, object.Labels, object.OwnerReferences, object.Finalizers = nil, nil, nil, nil, nil
	if isUnreadable {
		object.Annotations = map[string]string{metadata.AnnotationV1alpha2Unreadable: unreadable}
	}
	share(&object.Namespace, &object.Name, &object.Status.Image)
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

// slimDefinition keeps the name: a change of the definition is what matters, and who looks closer asks the API server.
func slimDefinition(in any) (any, error) {
	if definition, ok := in.(*apiextensionsv1.CustomResourceDefinition); ok {
		definition.ManagedFields, definition.Annotations = nil, nil
		definition.Spec, definition.Status = apiextensionsv1.CustomResourceDefinitionSpec{}, apiextensionsv1.CustomResourceDefinitionStatus{}
	}
	return in, nil
}

// share puts one text in the place of all that are equal. Most of what the cache holds says the same of many objects.
func share(texts ...*string) {
	for _, text := range texts {
		*text = unique.Make(*text).Value()
	}
}

// slimDeployment keeps the number of replicas and who used the scale subresource to set it, and the status.
func slimDeployment(in any) (any, error) {
	if deployment, ok := in.(*appsv1.Deployment); ok {
		scaled := slices.DeleteFunc(deployment.ManagedFields, func(entry metav1.ManagedFieldsEntry) bool {
			return entry.Subresource != "scale"
		})
		slimMetadata(deployment)
		deployment.ManagedFields = slices.Clip(scaled)
		deployment.Spec = appsv1.DeploymentSpec{Replicas: deployment.Spec.Replicas}
	}
	return in, nil
}

func slimConfigMap(in any) (any, error) {
	if configMap, ok := in.(*corev1.ConfigMap); ok {
		slimMetadata(configMap)
		configMap.Data, configMap.BinaryData = nil, nil
	}
	return in, nil
}

func slimService(in any) (any, error) {
	if service, ok := in.(*corev1.Service); ok {
		slimMetadata(service)
		service.Spec, service.Status = corev1.ServiceSpec{}, corev1.ServiceStatus{}
	}
	return in, nil
}

func slimNetworkPolicy(in any) (any, error) {
	if policy, ok := in.(*networkingv1.NetworkPolicy); ok {
		slimMetadata(policy)
		policy.Spec = networkingv1.NetworkPolicySpec{}
	}
	return in, nil
}

func slimPodDisruptionBudget(in any) (any, error) {
	if budget, ok := in.(*policyv1.PodDisruptionBudget); ok {
		slimMetadata(budget)
		budget.Spec, budget.Status = policyv1.PodDisruptionBudgetSpec{}, policyv1.PodDisruptionBudgetStatus{}
	}
	return in, nil
}

// slimMetadata keeps of a child's metadata what identifies it, and in the place of the record of what was declared last
// whether the child still is as declared. It has to be called while the child is whole.
func slimMetadata(child client.Object) {
	annotations := map[string]string{metadata.AnnotationLastDeclared: apply.Digest(child, metadata.AnnotationLastDeclared)}
	if replicas, found := child.GetAnnotations()[metadata.AnnotationReplicas]; found {
		annotations[metadata.AnnotationReplicas] = replicas
	}
	child.SetAnnotations(annotations)
	child.SetManagedFields(nil)
	namespace, name := child.GetNamespace(), child.GetName()
	share(&namespace, &name)
	child.SetNamespace(namespace)
	child.SetName(name)
	owners := child.GetOwnerReferences()
	for i := range owners {
		share(&owners[i].APIVersion, &owners[i].Kind, &owners[i].Name)
		owners[i].UID = unique.Make(owners[i].UID).Value()
	}
	child.SetOwnerReferences(owners)
	// The strings of the selector are shared by all children; each decoded label would have its own.
	if instance := child.GetLabels()[metadata.LabelInstance]; maps.Equal(metadata.PodLabels(instance), withoutVersion(child.GetLabels())) {
		child.SetLabels(metadata.Selector(instance))
	}
}

func withoutVersion(labels map[string]string) map[string]string {
	out := maps.Clone(labels)
	delete(out, metadata.LabelVersion)
	return out
}

// slimReplicaSet keeps which ConfigMaps a revision mounts.
func slimReplicaSet(in any) (any, error) {
	if replicaSet, ok := in.(*appsv1.ReplicaSet); ok {
		replicaSet.ManagedFields, replicaSet.Annotations = nil, nil
		volumes := slices.DeleteFunc(replicaSet.Spec.Template.Spec.Volumes, func(volume corev1.Volume) bool { return volume.ConfigMap == nil })
		replicaSet.Spec = appsv1.ReplicaSetSpec{
			Template: corev1.PodTemplateSpec{
				Spec: corev1.PodSpec{Volumes: slices.Clip(volumes)},
			},
		}
		replicaSet.Status = appsv1.ReplicaSetStatus{}
	}
	return in, nil
}

// slimPod keeps what tells why a Pod does not serve: its conditions and the state of its containers.
func slimPod(in any) (any, error) {
	if pod, ok := in.(*corev1.Pod); ok {
		pod.ManagedFields, pod.Annotations = nil, nil
		pod.Spec = corev1.PodSpec{NodeName: pod.Spec.NodeName}
		pod.Status = corev1.PodStatus{
			Phase:                 pod.Status.Phase,
			Reason:                pod.Status.Reason,
			Message:               pod.Status.Message,
			Conditions:            pod.Status.Conditions,
			ContainerStatuses:     pod.Status.ContainerStatuses,
			InitContainerStatuses: pod.Status.InitContainerStatuses,
		}
	}
	return in, nil
}
