package check

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// The invariants of this file hold at each moment at which the operator's caches are current and
// nothing is in progress. Each returns the problem of an instance, or "".

// Moment returns the violated invariants.
func Moment(s *State) []string {
	var out []string
	for _, invariant := range []func(*State, *v1alpha2.NginxOperator) string{
		reported, truthful, valid, loud, unstalled, mended, named, patient, renewed, free, awaited, recorded, admitted, sparse, complete,
	} {
		for _, instance := range s.Instances {
			if problem := invariant(s, instance); problem != "" {
				out = append(out, instance.Name+": "+problem)
			}
		}
	}
	return out
}

func conditionOf(instance *v1alpha2.NginxOperator, name string) metav1.Condition {
	return ptr.Deref(meta.FindStatusCondition(instance.Status.Conditions, name), metav1.Condition{})
}

// reported requires that the status is about the current generation.
func reported(_ *State, instance *v1alpha2.NginxOperator) string {
	ready := conditionOf(instance, v1alpha2.ConditionReady)
	if ready.Type == "" {
		return "the status is empty"
	}
	if ready.ObservedGeneration != instance.Generation {
		return fmt.Sprintf("Ready is about generation %d, the object has %d", ready.ObservedGeneration, instance.Generation)
	}
	return ""
}

// truthful requires that all Pods of a Ready instance are ready and updated, and that their number
// is that of the spec.
func truthful(s *State, instance *v1alpha2.NginxOperator) string {
	d := s.deployment(instance.Name)
	switch {
	case !meta.IsStatusConditionTrue(instance.Status.Conditions, v1alpha2.ConditionReady):
		return ""
	case d == nil:
		return "Ready without a Deployment"
	case d.Status.ReadyReplicas < *d.Spec.Replicas || d.Status.UpdatedReplicas < *d.Spec.Replicas:
		return fmt.Sprintf("Ready with %d of %d replicas ready and %d updated",
			d.Status.ReadyReplicas, *d.Spec.Replicas, d.Status.UpdatedReplicas)
	}
	isFree := s.Refuses || instance.Spec.Paused || instance.Spec.Autoscaling != nil || instance.Spec.Replicas == nil
	if !isFree && *d.Spec.Replicas != *instance.Spec.Replicas {
		return fmt.Sprintf("Ready with %d replicas, the spec has %d", *d.Spec.Replicas, *instance.Spec.Replicas)
	}
	return ""
}

// valid requires that no child is invalid, because the model of the API server rejects none as
// invalid.
func valid(_ *State, instance *v1alpha2.NginxOperator) string {
	for _, blocker := range instance.Status.BlockedBy {
		if blocker.Reason == v1alpha2.ReasonInvalidChild {
			return "a refusal by policy is reported as an invalid child: " + blocker.Message
		}
	}
	return ""
}

// incomplete reports whether Pods of the newest revision are missing, or old Pods are left.
func incomplete(d *appsv1.Deployment) bool {
	s := d.Status
	return s.UpdatedReplicas < *d.Spec.Replicas || s.AvailableReplicas < *d.Spec.Replicas || s.Replicas > s.UpdatedReplicas
}

// loud requires that an instance whose Deployment is paused during a rollout is Degraded.
func loud(s *State, instance *v1alpha2.NginxOperator) string {
	d := s.deployment(instance.Name)
	if d != nil && d.Spec.Paused && incomplete(d) && conditionOf(instance, v1alpha2.ConditionDegraded).Status != metav1.ConditionTrue {
		return "its Deployment is paused in a rollout, and it is not Degraded"
	}
	return ""
}

// unstalled requires that a failing rollout is rolled back, unless its Pods served before.
func unstalled(s *State, instance *v1alpha2.NginxOperator) string {
	d, rollout := s.deployment(instance.Name), ptr.Deref(instance.Spec.Rollout, v1alpha2.Rollout{})
	if d == nil || !s.Unproven[instance.Name] || s.Refuses || instance.Spec.Paused || d.Spec.Paused ||
		!ptr.Deref(rollout.AutomaticRollback, true) {
		return ""
	}
	return "the rollout fails, and is not rolled back: " + TemplatePods(&d.Spec.Template)
}

// missingObject matches the kubelet's message about a missing object of an environment variable.
var missingObject = regexp.MustCompile(`(secret|configmap) "([^"]+)" not found`)

// mended requires that a change that failed because of a missing object is retried when the object
// exists.
func mended(s *State, instance *v1alpha2.NginxOperator) string {
	degraded := conditionOf(instance, v1alpha2.ConditionDegraded)
	found := missingObject.FindStringSubmatch(degraded.Message)
	if degraded.Status == metav1.ConditionTrue && found != nil && s.Exists[found[1]+"/"+found[2]] {
		return "it exists: " + degraded.Message
	}
	return ""
}

// patient requires that an error of the kubelet that passes within seconds does not cause a
// rollback.
func patient(_ *State, instance *v1alpha2.NginxOperator) string {
	for _, failed := range instance.Status.FailedRevisions {
		if strings.Contains(failed.Message, "failed to sync") {
			return "rolled back because of an error that passes: " + failed.Message
		}
	}
	return ""
}

// renewal is the maximum time until an instance starts the rollout of a renewed certificate.
const renewal = 2 * time.Minute

// renewed requires that the status reports the certificate that all Pods have, and that the Pods
// get a renewed certificate soon. nginx reads the certificate only at its start, so Pods that are
// older than the certificate have another one.
func renewed(s *State, instance *v1alpha2.NginxOperator) string {
	d := s.deployment(instance.Name)
	if d == nil || incomplete(d) {
		return ""
	}
	held := s.Refuses || instance.Spec.Paused || d.Spec.Paused
	for _, reported := range instance.Status.Certificates {
		now, exists := s.Certificates[reported.SecretName]
		isReported := reported.NotAfter.Time.Equal(now.NotAfter)
		if !exists || !isReported && (held || s.Now.Sub(now.Written) < renewal) {
			continue
		}
		for _, pod := range s.Pods {
			// Times of objects have no fractions of a second.
			old := pod.CreationTimestamp.Time.Add(time.Second).Before(now.Written)
			if pod.Labels["app.kubernetes.io/instance"] == instance.Name && pod.DeletionTimestamp == nil && old {
				return fmt.Sprintf("reports the certificate until %s, and Pod %s has none until %s",
					reported.NotAfter.Format(time.DateTime), pod.Name, now.NotAfter.Format(time.DateTime))
			}
		}
	}
	return ""
}

// portRetry is the maximum time that a node port may block an instance after its release.
const portRetry = 150 * time.Second

// free requires that a node port that was allocated for a short time does not block an instance for
// long.
func free(s *State, instance *v1alpha2.NginxOperator) string {
	for _, blocker := range instance.Status.BlockedBy {
		if !strings.Contains(blocker.Message, "already allocated") {
			continue
		}
		for _, port := range instance.Spec.Ports {
			since, foreign := s.NodePorts[ptr.Deref(port.NodePort, 0)]
			if foreign && !since.IsZero() && s.Now.Sub(since) > portRetry {
				return fmt.Sprintf("blocked by a node port that is free since %s: %s", s.Now.Sub(since), blocker.Message)
			}
		}
	}
	return ""
}

func waits(instance *v1alpha2.NginxOperator) bool {
	return conditionOf(instance, v1alpha2.ConditionProgressing).Reason == v1alpha2.ReasonWaitingForFleet
}

// stopped reports whether the operator reports why it starts no more rollouts.
func (s *State) stopped() bool {
	return s.Fleet.Reason == "FleetRolloutStopped" || s.Fleet.Reason == "FleetRolloutReleased"
}

// awaited requires that an instance waits for a rollout slot only while another instance rolls or
// fails, or if the operator reports why the rollout has stopped.
func awaited(s *State, instance *v1alpha2.NginxOperator) string {
	if !waits(instance) || s.stopped() {
		return ""
	}
	for _, other := range s.Instances {
		d, degraded := s.deployment(other.Name), conditionOf(other, v1alpha2.ConditionDegraded)
		fails := degraded.Status == metav1.ConditionTrue && degraded.Reason != v1alpha2.ReasonRolledBack
		if other.Name != instance.Name && (fails || d == nil || incomplete(d)) {
			return ""
		}
	}
	return fmt.Sprintf("waits for a rollout slot, and no instance rolls; the operator reports %s: %s", s.Fleet.Reason, s.Fleet.Message)
}

// Explained returns the instances that are Degraded some minutes after all faults have ended,
// although their changes were not rolled back. It also returns the instances that wait for a
// rollout slot, unless the operator reports why the rollout has stopped.
func Explained(s *State) []string {
	var out []string
	for _, instance := range s.Instances {
		degraded := conditionOf(instance, v1alpha2.ConditionDegraded)
		if degraded.Status == metav1.ConditionTrue && degraded.Reason != v1alpha2.ReasonRolledBack {
			out = append(out, fmt.Sprintf("%s: Degraded after all faults have ended: %s: %s", instance.Name, degraded.Reason, degraded.Message))
		}
		if waits(instance) && !s.stopped() {
			out = append(out, fmt.Sprintf("%s: waits for a rollout slot, and the operator reports %s: %s",
				instance.Name, s.Fleet.Reason, s.Fleet.Message))
		}
	}
	return out
}

// Watcher compares a moment with the previous one. The zero value has no previous moment.
type Watcher struct{ before map[string]seen }

type seen struct {
	inputs     int
	spec       string
	generation int64
	rolledBack bool
}

// Moment returns the instances that are no longer rolled back although only spec.paused has
// changed, unless a later attempt has succeeded. Of two changes since the previous moment, the
// second can revert the first, so they prove nothing.
func (w *Watcher) Moment(s *State) []string {
	now := map[string]seen{}
	var out []string
	for _, instance := range s.Instances {
		spec := instance.Spec.DeepCopy()
		spec.Paused = false
		raw, err := json.Marshal(spec)
		if err != nil {
			panic(err)
		}
		degraded := conditionOf(instance, v1alpha2.ConditionDegraded)
		rolledBack := degraded.Status == metav1.ConditionTrue && degraded.Reason == v1alpha2.ReasonRolledBack
		one := seen{s.Inputs, string(instance.UID) + string(raw), instance.Generation, rolledBack}
		before := w.before[instance.Name]
		same := before.spec == one.spec && before.inputs == one.inputs && one.generation <= before.generation+1
		d := s.deployment(instance.Name)
		served := conditionOf(instance, v1alpha2.ConditionReady).Status == metav1.ConditionTrue ||
			d != nil && !incomplete(d) && TemplatePods(&d.Spec.Template) == DeclaredPods(&instance.Spec)
		if before.rolledBack && same && degraded.Status == metav1.ConditionFalse && !served {
			out = append(out, instance.Name+": no longer reported as rolled back, although at most spec.paused has changed")
		}
		now[instance.Name] = one
	}
	w.before = now
	return out
}
