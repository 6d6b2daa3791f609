package integration

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/wellknown"
)

const noSuchImage = "registry.example.com/nginx:none"

// newestFails simulates the controllers and the kubelet if the Pods of the newest revision do not
// start. It creates a ReplicaSet with the number of the Deployment's revision, and a Pod of the
// ReplicaSet.
func newestFails(t *testing.T, namespace, number string, status corev1.PodStatus) {
	t.Helper()
	newestFailsOf(t, namespace, "web", number, status)
}

func newestFailsOf(t *testing.T, namespace, name, number string, status corev1.PodStatus) {
	t.Helper()
	deployment := must1(childrenOf(t.Context(), namespace, name))(t).deployment
	set := replicaSet(deployment)
	set.Name, set.Annotations = name+"-"+number, map[string]string{wellknown.AnnotationRevision: number}
	set.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(deployment, appsv1.SchemeGroupVersion.WithKind("Deployment"))}
	create(t, set)
	pod := &corev1.Pod{Spec: *set.Spec.Template.Spec.DeepCopy()}
	pod.Namespace, pod.Name, pod.Labels = namespace, set.Name+"-x", set.Spec.Template.Labels
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}
	create(t, pod)
	pod.Status = status
	must(t, suite.admin.Status().Update(t.Context(), pod))
	update(t, deployment, func(d *appsv1.Deployment) {
		metav1.SetMetaDataAnnotation(&d.ObjectMeta, wellknown.AnnotationRevision, number)
	})
	setDeploymentStatus(t, namespace, name, func(d *appsv1.Deployment) {
		n := *d.Spec.Replicas
		d.Status.ObservedGeneration, d.Status.Replicas, d.Status.UpdatedReplicas = d.Generation, n+1, 1
	})
}

// runsImage waits until the Deployment has this image and this number of replicas.
func runsImage(t *testing.T, namespace, image string, replicas int32) {
	t.Helper()
	waitForWeb(t, namespace, func(got children) error {
		if now := got.deployment.Spec.Template.Spec.Containers[0].Image; now != image || *got.deployment.Spec.Replicas != replicas {
			return fmt.Errorf("image %q, %d replicas", now, *got.deployment.Spec.Replicas)
		}
		return nil
	})
}

// TestFailedChangeIsTakenBack verifies that the operator rolls back a failed change as a whole and
// does not retry a text that nginx refuses, even after a restart. The last good revision still
// scales. The operator tries another change, and tries the same one again after the object has
// changed.
func TestFailedChangeIsTakenBack(t *testing.T) {
	namespace, object, before := newReadyWeb(t, func(s *v1alpha2.NginxOperatorSpec) { s.Config = &v1alpha2.Config{Inline: servers} })
	good := must1(waitForStatusOnce(t.Context(), namespace, "web"))(t).Status.LastGoodRevision
	if good == nil || good.Image != operandImage || !strings.HasSuffix(before.configMaps[0].Name, "-"+good.ConfigHash) {
		t.Fatalf("last good revision %+v", good)
	}

	failing := func(o *v1alpha2.NginxOperator) {
		o.Spec.Image, o.Spec.Config.Inline = noSuchImage, strings.Replace(servers, "server {", "server { gzip on;", 1)
	}
	update(t, object, failing)
	runsImage(t, namespace, noSuchImage, 1)
	const refused = `2026/01/01 00:00:00 [emerg] 7#7: unknown directive "gzip" in /etc/nginx-operator/servers.conf:1`
	newestFails(t, namespace, "2", crashingPod(refused))
	degraded := waitForCondition(t, namespace, "web", v1alpha2.ConditionDegraded, metav1.ConditionTrue, v1alpha2.ReasonRolledBack)
	for _, words := range []string{"generation 2", noSuchImage, "configuration", "unknown directive", "The last good revision is running"} {
		if !strings.Contains(degraded.Message, words) {
			t.Errorf("the message does not say %q: %s", words, degraded.Message)
		}
	}
	runsImage(t, namespace, operandImage, 1)
	after := must1(childrenOf(t.Context(), namespace, "web"))(t)
	if after.deployment.Spec.Template.Spec.Volumes[0].ConfigMap.Name != before.configMaps[0].Name {
		t.Errorf("the configuration of what failed is still mounted")
	}
	waitForEvent(t, namespace, corev1.EventTypeWarning, v1alpha2.ReasonRolledBack, 1)

	must(t, suite.operator.KillLeader(suite.admin))
	startNextOperator(t)
	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Replicas = ptr.To[int32](3) })
	runsImage(t, namespace, operandImage, 3)
	rollOut(t, namespace, "web")
	waitForCondition(t, namespace, "web", v1alpha2.ConditionProgressing, metav1.ConditionFalse, v1alpha2.ReasonRolledBack)
	waitForCondition(t, namespace, "web", v1alpha2.ConditionReady, metav1.ConditionFalse, v1alpha2.ReasonRolledBack)

	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.ForceRedeploy = "again" })
	runsImage(t, namespace, noSuchImage, 3)
	waitForStatus(t, namespace, "web", func(got *v1alpha2.NginxOperator) error {
		if len(got.Status.FailedRevisions) > 0 {
			return errors.New("what was taken back is still remembered")
		}
		return nil
	})
	makeReady(t, namespace, "web")
	if now := must1(waitForStatusOnce(t.Context(), namespace, "web"))(t).Status.LastGoodRevision; now.Image != noSuchImage {
		t.Errorf("last good revision %+v", now)
	}
}

// TestFailedChangeIsAttemptedAgain verifies that a change whose failure may pass is rolled out
// again at its time, that no running Pod ends for the attempt, and that the status counts the
// failures. It moves the time of the attempt instead of waiting for it.
func TestFailedChangeIsAttemptedAgain(t *testing.T) {
	t.Parallel()
	namespace, object, _ := newReadyWeb(t, func(s *v1alpha2.NginxOperatorSpec) {
		s.Rollout = &v1alpha2.Rollout{MaxSurge: ptr.To(intstr.FromInt32(0)), MaxUnavailable: ptr.To(intstr.FromInt32(1))}
	})
	failed := func(attempts int32) {
		t.Helper()
		want := fmt.Sprintf("attempt %d ", attempts+1)
		waitForStatus(t, namespace, "web", func(got *v1alpha2.NginxOperator) error {
			degraded := meta.FindStatusCondition(got.Status.Conditions, v1alpha2.ConditionDegraded)
			if now := got.Status.FailedRevisions; len(now) != 1 || now[0].Attempts != attempts || now[0].NextAttemptTime == nil {
				return fmt.Errorf("failed revisions %+v", now)
			}
			if degraded == nil || degraded.Reason != v1alpha2.ReasonRolledBack || !strings.Contains(degraded.Message, want) {
				return fmt.Errorf("the condition %+v does not say %q", degraded, want)
			}
			return nil
		})
		runsImage(t, namespace, operandImage, 1)
		rollOut(t, namespace, "web")
	}
	strategy := func(surge, unavailable int) {
		t.Helper()
		waitForWeb(t, namespace, func(got children) error {
			now := got.deployment.Spec.Strategy.RollingUpdate
			if now.MaxSurge.IntValue() != surge || now.MaxUnavailable.IntValue() != unavailable {
				return fmt.Errorf("surge %s, unavailable %s", now.MaxSurge, now.MaxUnavailable)
			}
			return nil
		})
	}
	// The operator may write the status at the same time, with the time that it had before.
	attempt := func() {
		t.Helper()
		waitFor(t, func() error {
			got := must1(waitForStatusOnce(t.Context(), namespace, "web"))(t)
			if now := got.Status.FailedRevisions; len(now) == 1 && now[0].AttemptTime != nil {
				return nil
			} else if len(now) == 1 {
				now[0].NextAttemptTime = ptr.To(metav1.Now())
			}
			return errors.Join(suite.admin.Status().Update(t.Context(), got), errors.New("no attempt has started"))
		})
		runsImage(t, namespace, noSuchImage, 1)
		strategy(1, 0)
	}

	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Image = noSuchImage })
	runsImage(t, namespace, noSuchImage, 1)
	newestFails(t, namespace, "2", waitingPod("ErrImagePull", noSuchImage+": not found"))
	failed(1)
	strategy(0, 1)
	attempt()
	newestFails(t, namespace, "4", waitingPod("ErrImagePull", noSuchImage+": not found"))
	failed(2)
	attempt()
	rollOutUntilReady(t, namespace)
	strategy(0, 1)
	if got := must1(waitForStatusOnce(t.Context(), namespace, "web"))(t); len(got.Status.FailedRevisions) > 0 ||
		got.Status.LastGoodRevision.Image != noSuchImage {
		t.Errorf("status %+v", got.Status)
	}
}

// TestRollbackIsSwitchedOff verifies that automaticRollback false only reports a failure.
func TestRollbackIsSwitchedOff(t *testing.T) {
	t.Parallel()
	namespace, object, _ := newReadyWeb(t, func(s *v1alpha2.NginxOperatorSpec) {
		s.Rollout = &v1alpha2.Rollout{AutomaticRollback: ptr.To(false)}
	})
	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Image = noSuchImage })
	runsImage(t, namespace, noSuchImage, 1)
	newestFails(t, namespace, "2", waitingPod("ErrImagePull", noSuchImage+": not found"))
	waitForCondition(t, namespace, "web", v1alpha2.ConditionDegraded, metav1.ConditionTrue, v1alpha2.ReasonImagePullFailed)
	runsImage(t, namespace, noSuchImage, 1)

	// When automaticRollback is enabled, the operator rolls back the failed revision.
	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Rollout = nil })
	waitForCondition(t, namespace, "web", v1alpha2.ConditionDegraded, metav1.ConditionTrue, v1alpha2.ReasonRolledBack)
	runsImage(t, namespace, operandImage, 1)
}

// TestRenewedCertificateReachesWhatWasTakenBack verifies that a rolled-back instance gets a renewed
// certificate. If that fails, the earlier Pods stay.
func TestRenewedCertificateReachesWhatWasTakenBack(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	secret := newSecret(namespace, "shop", newCertificate(t))
	create(t, secret)
	object := newInstance(namespace, "web")
	object.Spec.TLS = []v1alpha2.TLS{{SecretName: "shop"}}
	serve(t, object)
	digest := func() string {
		return must1(childrenOf(t.Context(), namespace, "web"))(t).deployment.Spec.Template.Annotations["operator.example.com/certificates"]
	}
	first := digest()
	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Image = noSuchImage })
	runsImage(t, namespace, noSuchImage, 1)
	newestFails(t, namespace, "2", waitingPod("ErrImagePull", noSuchImage+": not found"))
	waitForCondition(t, namespace, "web", v1alpha2.ConditionDegraded, metav1.ConditionTrue, v1alpha2.ReasonRolledBack)
	runsImage(t, namespace, operandImage, 1)

	// The referenced Secret has changed, so the operator retries the change. The revision that it
	// rolls back to gets the new certificate.
	update(t, secret, func(s *corev1.Secret) { s.Data = newCertificate(t) })
	runsImage(t, namespace, noSuchImage, 1)
	newestFails(t, namespace, "3", waitingPod("ErrImagePull", noSuchImage+": not found"))
	runsImage(t, namespace, operandImage, 1)
	second := digest()
	if second == first {
		t.Fatal("the renewed certificate does not reach what runs")
	}
	newestFails(t, namespace, "4", crashingPod("2026/01/01 00:00:00 [emerg] 7#7: cannot load certificate"))
	waitForCondition(t, namespace, "web", v1alpha2.ConditionReady, metav1.ConditionFalse, v1alpha2.ReasonRolledBack)
	if now := digest(); now != second {
		t.Errorf("certificates %s, want %s: Pods mount a Secret by its name", now, second)
	}
}
