package objectcache

import (
	"reflect"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/internal/cached"
	"github.com/example/nginx-operator/internal/nginxlog"
	"github.com/example/nginx-operator/internal/wellknown"
)

// slimReplicaSet keeps the number of the revision and the mounted ConfigMaps. If the ReplicaSet has
// replicas, it also keeps the ports.
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

// slimConditions keeps whether a Pod is ready, and why it is not scheduled.
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

// slimState keeps the start of a running container, and why a container waits or has ended. Of a
// log, it keeps the line that explains the end.
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

// slimControllerRevision keeps the number of the revision.
func slimControllerRevision(revision *appsv1.ControllerRevision) {
	slimChild(revision)
	revision.Data = runtime.RawExtension{}
}

// slimOther keeps no field of a child but its identity.
func slimOther(child client.Object) {
	slimChild(child)
	identity := *metaOf(child)
	reflect.ValueOf(child).Elem().SetZero()
	*metaOf(child) = identity
}
