package manager

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/internal/apply"
	"github.com/example/nginx-operator/internal/metadata"
)

// The functions of this file take from an object, before it enters the cache, what no reader of the cache looks at.
// They pass anything else through (the cache also hands over tombstones).

// slimChild keeps what is compared with the declaration.
func slimChild(in any) (any, error) {
	if child, ok := in.(client.Object); ok {
		digestRecord(child)
		child.SetManagedFields(nil)
	}
	return in, nil
}

// digestRecord puts a digest in the place of the record of what was declared last. A record that has been digested
// already stays: the cache may hand an object in twice.
func digestRecord(child client.Object) {
	if record, found := child.GetAnnotations()[metadata.AnnotationLastDeclared]; found && strings.HasPrefix(record, "{") {
		child.GetAnnotations()[metadata.AnnotationLastDeclared] = apply.Digest(record)
	}
}

// slimDeployment keeps of the managed fields who used the scale subresource, and how.
func slimDeployment(in any) (any, error) {
	if deployment, ok := in.(*appsv1.Deployment); ok {
		digestRecord(deployment)
		deployment.ManagedFields = slices.DeleteFunc(deployment.ManagedFields, func(entry metav1.ManagedFieldsEntry) bool {
			return entry.Subresource != "scale"
		})
	}
	return in, nil
}

// slimConfigMap drops the content: our ConfigMaps are immutable and named by its hash.
func slimConfigMap(in any) (any, error) {
	if configMap, ok := in.(*corev1.ConfigMap); ok {
		digestRecord(configMap)
		configMap.ManagedFields = nil
		if configMap.Immutable != nil && *configMap.Immutable {
			configMap.Data, configMap.BinaryData = nil, nil
		}
	}
	return in, nil
}

// slimReplicaSet keeps which ConfigMaps a revision mounts.
func slimReplicaSet(in any) (any, error) {
	if replicaSet, ok := in.(*appsv1.ReplicaSet); ok {
		replicaSet.ManagedFields, replicaSet.Annotations = nil, nil
		replicaSet.Spec = appsv1.ReplicaSetSpec{
			Template: corev1.PodTemplateSpec{
				Spec: corev1.PodSpec{Volumes: replicaSet.Spec.Template.Spec.Volumes},
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
