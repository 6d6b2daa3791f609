package integration

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
)

func resourceQuantity(value string) *resource.Quantity { return ptr.To(resource.MustParse(value)) }

// TestReadyIsTruthful verifies that Ready is True only for the running generation. It becomes False
// when the spec changes, and True again when the rollout is complete.
func TestReadyIsTruthful(t *testing.T) {
	t.Parallel()
	namespace, object, _ := newWeb(t, nil)
	waitForCondition(t, namespace, "web", v1alpha2.ConditionReady, metav1.ConditionFalse, v1alpha2.ReasonRolloutInProgress)
	rollOut(t, namespace, "web")
	ready := waitForCondition(t, namespace, "web", v1alpha2.ConditionReady, metav1.ConditionTrue, v1alpha2.ReasonAllReplicasReady)
	if ready.ObservedGeneration != 1 {
		t.Errorf("Ready has observedGeneration %d", ready.ObservedGeneration)
	}
	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Ports = onPort(8081) })
	waitForCondition(t, namespace, "web", v1alpha2.ConditionReady, metav1.ConditionFalse, v1alpha2.ReasonRolloutInProgress)
	// One new Pod is ready, and an old one still exists. The rollout is not complete.
	setDeploymentStatus(t, namespace, "web", func(d *appsv1.Deployment) {
		d.Status.ObservedGeneration = d.Generation
		d.Status.Replicas, d.Status.UpdatedReplicas, d.Status.ReadyReplicas, d.Status.AvailableReplicas = 2, 1, 2, 2
	})
	waitForCondition(t, namespace, "web", v1alpha2.ConditionReady, metav1.ConditionFalse, v1alpha2.ReasonRolloutInProgress)
	rollOut(t, namespace, "web")
	ready = waitForCondition(t, namespace, "web", v1alpha2.ConditionReady, metav1.ConditionTrue, v1alpha2.ReasonAllReplicasReady)
	if ready.ObservedGeneration != 2 {
		t.Errorf("Ready has observedGeneration %d", ready.ObservedGeneration)
	}
	waitForEvent(t, namespace, corev1.EventTypeNormal, v1alpha2.ReasonRolloutInProgress, 1)
	waitForEvent(t, namespace, corev1.EventTypeNormal, v1alpha2.ReasonAllReplicasReady, 1)
}

// TestFailuresOfOperands verifies that each failure that a Pod, a Deployment, or an admission
// plugin reports sets its own reason, is reported by one Event, and recovers with its cause. The
// messages are real ones of the kubelet and the controllers.
func TestFailuresOfOperands(t *testing.T) {
	t.Parallel()
	for reason, test := range map[string]struct {
		pod        corev1.PodStatus
		deployment appsv1.DeploymentStatus
		want       string
	}{
		v1alpha2.ReasonImagePullFailed: {
			pod: waitingPod("ImagePullBackOff", `Back-off pulling image "nginx:none": ErrImagePull: manifest unknown`), want: "manifest unknown",
		},
		v1alpha2.ReasonContainerConfigError: {
			pod:  waitingPod("CreateContainerConfigError", "container has runAsNonRoot and image will run as root"),
			want: "image will run as root. Set spec.securityContext.runAsUser",
		},
		v1alpha2.ReasonCrashLoop: {
			pod:  crashingPod("2026/01/01 00:00:00 [emerg] 1#1: bind() to 0.0.0.0:80 failed (13: Permission denied)\n"),
			want: "exit code 1 (Error): [emerg] bind() to 0.0.0.0:80 failed",
		},
		v1alpha2.ReasonInvalidConfiguration: {
			pod:  crashingPod("2026/01/01 00:00:00 [emerg] 1#1: \"root\" directive is duplicate in /etc/nginx-operator/servers.conf:3\n"),
			want: `nginx refuses spec.config, line 3: "root" directive is duplicate`,
		},
		v1alpha2.ReasonUnschedulable: {
			pod: corev1.PodStatus{Conditions: []corev1.PodCondition{{
				Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/1 nodes are available",
			}}}, want: "0/1 nodes are available",
		},
		v1alpha2.ReasonQuotaExceeded: {
			deployment: replicaFailure(`pods "web-5d-x7" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1`),
			want:       "Pods are forbidden: exceeded quota",
		},
		v1alpha2.ReasonForbidden: {
			deployment: replicaFailure(`pods "web-5d-x7" is forbidden: violates PodSecurity "restricted:latest"`), want: "violates PodSecurity",
		},
		v1alpha2.ReasonAPIError: {
			deployment: replicaFailure(`Internal error occurred: failed calling webhook "inject.example.com": context deadline exceeded`),
			want:       `failed to create Pods: Internal error occurred: failed calling webhook "inject.example.com"`,
		},
		v1alpha2.ReasonProgressDeadlineExceeded: {
			deployment: appsv1.DeploymentStatus{Conditions: []appsv1.DeploymentCondition{{
				Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse,
				Reason: "ProgressDeadlineExceeded", Message: "has timed out progressing",
			}}}, want: "has timed out progressing",
		},
	} {
		t.Run(reason, func(t *testing.T) {
			namespace, _, first := newWeb(t, nil)
			template := first.deployment.Spec.Template
			create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "default"}})
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web-1", Labels: template.Labels}, Spec: template.Spec}
			create(t, pod)
			pod.Status = test.pod
			must(t, suite.admin.Status().Update(t.Context(), pod))
			setDeploymentStatus(t, namespace, "web", func(d *appsv1.Deployment) {
				d.Status = test.deployment
				d.Status.ObservedGeneration = d.Generation
			})
			degraded := waitForCondition(t, namespace, "web", v1alpha2.ConditionDegraded, metav1.ConditionTrue, reason)
			if !strings.Contains(degraded.Message, test.want) {
				t.Errorf("message %q does not say %q", degraded.Message, test.want)
			}
			waitForCondition(t, namespace, "web", v1alpha2.ConditionReady, metav1.ConditionFalse, reason)
			waitForEvent(t, namespace, corev1.EventTypeWarning, reason, 1)
			want := []v1alpha2.Blocker{{Reason: reason, Message: degraded.Message}}
			if diff := cmp.Diff(want, must1(waitForStatusOnce(t.Context(), namespace, "web"))(t).Status.BlockedBy); diff != "" {
				t.Errorf("blockedBy (-want +got):\n%s", diff)
			}

			must(t, suite.admin.Delete(t.Context(), pod, client.GracePeriodSeconds(0)))
			makeReady(t, namespace, "web")
			waitForCondition(t, namespace, "web", v1alpha2.ConditionDegraded, metav1.ConditionFalse, v1alpha2.ReasonAsExpected)
			waitForEvent(t, namespace, corev1.EventTypeNormal, "Recovered", 1)
			if left := must1(waitForStatusOnce(t.Context(), namespace, "web"))(t).Status.BlockedBy; len(left) != 0 {
				t.Errorf("blocked by %v after it recovered", left)
			}
		})
	}
}

func waitingPod(reason, message string) corev1.PodStatus {
	return corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
		Name: "nginx", Image: "nginx:none",
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}},
	}}}
}

func crashingPod(log string) corev1.PodStatus {
	status := waitingPod("CrashLoopBackOff", "back-off 10s restarting failed container")
	status.ContainerStatuses[0].RestartCount = 2
	status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", Message: log}
	return status
}

func replicaFailure(message string) appsv1.DeploymentStatus {
	return appsv1.DeploymentStatus{Conditions: []appsv1.DeploymentCondition{{
		Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: message,
	}}}
}

// TestReplicasComeAndGo verifies that an instance is not Ready if it lost a replica. An instance
// that is scaled to zero is Ready, with a reason that explains why no Pod answers.
func TestReplicasComeAndGo(t *testing.T) {
	t.Parallel()
	namespace, object, _ := newReadyWeb(t, func(s *v1alpha2.NginxOperatorSpec) { s.Replicas = ptr.To[int32](2) })
	setDeploymentStatus(t, namespace, "web", func(d *appsv1.Deployment) { d.Status.ReadyReplicas, d.Status.AvailableReplicas = 1, 1 })
	waitForCondition(t, namespace, "web", v1alpha2.ConditionReady, metav1.ConditionFalse, v1alpha2.ReasonReplicasUnavailable)
	waitForEvent(t, namespace, corev1.EventTypeWarning, v1alpha2.ReasonReplicasUnavailable, 1)

	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Replicas = ptr.To[int32](0) })
	waitForWeb(t, namespace, func(got children) error {
		if *got.deployment.Spec.Replicas != 0 {
			return errors.New("not scaled yet")
		}
		return nil
	})
	rollOut(t, namespace, "web")
	waitForCondition(t, namespace, "web", v1alpha2.ConditionReady, metav1.ConditionTrue, v1alpha2.ReasonScaledToZero)
	status := must1(waitForStatusOnce(t.Context(), namespace, "web"))(t).Status
	if status.Replicas != 0 || status.ReadyReplicas != 0 || !meta.IsStatusConditionFalse(status.Conditions, v1alpha2.ConditionProgressing) {
		t.Errorf("status of nothing: %+v", status)
	}
}
