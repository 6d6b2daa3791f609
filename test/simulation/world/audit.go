package world

import (
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/test/simulation/check"
	"github.com/example/nginx-operator/test/simulation/storage"
)

// inFlight is the maximum time between the operator's read of an object and its last write from it.
const inFlight = 10 * time.Second

// audit follows all writes, and evaluates those of the operator. It knows specs, Pod templates,
// Pods, and endpoints, and nothing that the operator decides or records.
type audit struct {
	// seen is the resource version of the last write. at is its time. podsView is the resource version
	// of the Pods that the operator may still see then, or 0 if it sees the newest.
	seen      int64
	at        time.Time
	podsView  int64
	instances map[string]*audited
	// sets has the Pod template of each ReplicaSet, and pods has all Pods.
	sets map[types.UID]string
	pods map[string]*corev1.Pod
	// mounts has the ConfigMaps that Pods and ReplicaSets mount.
	mounts map[storage.Key][]string
	found  []string
}

func newAudit() audit {
	return audit{
		instances: map[string]*audited{}, sets: map[types.UID]string{}, pods: map[string]*corev1.Pod{}, mounts: map[storage.Key][]string{},
	}
}

// follow makes the audit follow all writes until now.
func (w *World) follow() {
	for _, version := range w.Store.Since(w.audit.seen) {
		w.audit.follow(version, w.podsView(version.At))
	}
}

// Audit returns what the audit has found since the last call.
func (w *World) Audit() []string {
	w.follow()
	found := w.audit.found
	w.audit.found = nil
	return found
}

func (a *audit) errorf(format string, args ...any) {
	a.found = append(a.found, "at "+a.at.Format(time.TimeOnly)+", "+fmt.Sprintf(format, args...))
}

// of returns the instance of an object with this name.
func (a *audit) of(name string) *audited {
	name, _, _ = strings.Cut(name, "-")
	if a.instances[name] == nil {
		a.instances[name] = newAudited()
	}
	return a.instances[name]
}

func (a *audit) follow(version *storage.Version, podsView int64) {
	// The EndpointSlice controller replaces slices in one instant, one after the other.
	if version.At.After(a.at) {
		a.reach()
	}
	a.seen, a.at, a.podsView = version.Revision, version.At, podsView
	one := a.of(version.Name)
	if version.Requested {
		a.whilePaused(one, version)
	}
	if isEntrance(version.Resource) && (version.Deleted || owned(version)) {
		a.enter(one, version)
	}
	switch version.Resource {
	case storage.NginxOperators:
		a.declare(one, version)
	case storage.Deployments:
		a.deploy(one, version)
	case storage.ReplicaSets:
		rs := storage.As[appsv1.ReplicaSet](version)
		delete(rs.Spec.Template.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
		a.sets[rs.UID] = textOf(&rs.Spec.Template)
		a.mount(version, &rs.Spec.Template.Spec)
	case storage.Pods:
		a.observe(one, version)
	case storage.ConfigMaps:
		a.unmount(version)
	case storage.ControllerRevisions:
		if delete(one.records, version.Name); !version.Deleted {
			one.records[version.Name] = true
		}
	case storage.Services:
		if one.service = nil; !version.Deleted && owned(version) {
			one.service = storage.As[corev1.Service](version)
		}
	case storage.EndpointSlices:
		if delete(one.slices, version.Name); !version.Deleted {
			one.slices[version.Name] = storage.As[discoveryv1.EndpointSlice](version)
		}
	}
	if version.Requested {
		a.reach()
	}
}

func textOf(template *corev1.PodTemplateSpec) string { return fmt.Sprint(storage.ToMap(template)) }

// whilePaused requires that the operator writes only the status and the slices of a rename.
func (a *audit) whilePaused(one *audited, version *storage.Version) {
	if version.Resource != storage.NginxOperators && version.Resource != storage.EndpointSlices &&
		!one.pausedSince.IsZero() && a.at.Sub(one.pausedSince) > inFlight {
		a.errorf("%s is written, and its instance is paused since %s", version.Key, one.pausedSince.Format(time.TimeOnly))
	}
}

// declare follows an instance. A change that is reported as failed must have had Pods of its own
// that failed, and must not have served before that.
func (a *audit) declare(one *audited, version *storage.Version) {
	if version.Deleted {
		*one = *newAudited()
		return
	}
	instance := storage.As[v1alpha2.NginxOperator](version)
	if one.spec == nil || !equality.Semantic.DeepEqual(*one.spec, instance.Spec) {
		a.speak(one, &instance.Spec)
	}
	one.spec = &instance.Spec
	switch {
	case !one.spec.Paused:
		one.pausedSince = time.Time{}
	case one.pausedSince.IsZero():
		one.pausedSince = a.at
	}
	wasLost := one.lost
	if one.lost = len(instance.Status.Conditions) == 0; one.lost {
		one.known = map[string]bool{}
	}

	// With a lost status, a change that failed before is reported while other Pods serve.
	declared := check.DeclaredPods(one.spec)
	one.declared[declared] = true
	isOlder := one.pods != declared && one.failed[declared] || wasLost && one.hasBroken(declared)
	failures := map[string]bool{}
	for _, failed := range instance.Status.FailedRevisions {
		text := fmt.Sprint(failed.Revision, failed.Attempts)
		failures[text] = true
		switch {
		case !version.Requested || one.failures[text] || isOlder:
		case !one.troubled:
			a.errorf("%s: rolled back, and none of its own Pods failed: %s", version.Name, failed.Message)
		case !one.complete.IsZero() && a.at.Sub(one.complete) > quietTime:
			a.errorf("%s: rolled back, and its Pods served since %s: %s", version.Name, one.complete.Format(time.TimeOnly), failed.Message)
		}
	}
	one.failures = failures
}

// deploy follows a Deployment. The operator may give it the Pods of the spec, Pods that served, or
// Pods that were declared and have not failed.
func (a *audit) deploy(one *audited, version *storage.Version) {
	if one.spec == nil || version.Deleted {
		return
	}
	d := storage.As[appsv1.Deployment](version)
	pods, template, before := check.TemplatePods(&d.Spec.Template), textOf(&d.Spec.Template), one.pods
	if d.UID != one.deployment {
		one.deployment, one.templates = d.UID, map[string]bool{}
	}
	if template != one.template || d.Status.UpdatedReplicas > one.updated || d.Status.AvailableReplicas > one.available {
		one.due = a.at.Add(time.Duration(ptr.Deref(d.Spec.ProgressDeadlineSeconds, 0)) * time.Second)
	}
	one.updated, one.available = d.Status.UpdatedReplicas, d.Status.AvailableReplicas
	if template != one.template {
		one.template, one.pods, one.troubled, one.complete = template, pods, false, time.Time{}
		for _, pod := range a.pods { // a retry can find a Pod of the attempt before, which still fails
			if a.isOf(one, pod) && fails(pod) {
				one.fail()
			}
		}
	}
	mayReturn := one.served[pods] || one.declared[pods] && (!one.failed[pods] || len(one.served) == 0)
	if version.Requested && pods != before && pods != check.DeclaredPods(one.spec) && !mayReturn {
		a.errorf("Deployment %s gets Pods that neither the spec has nor served: %s", version.Name, pods)
	}
	a.progress(one, d, pods)
}

// progress follows the rollout of the Pods of a Deployment.
func (a *audit) progress(one *audited, d *appsv1.Deployment, pods string) {
	status := d.Status
	one.stalls = slices.ContainsFunc(status.Conditions, func(c appsv1.DeploymentCondition) bool {
		return c.Reason == "ProgressDeadlineExceeded"
	})
	if one.stalls {
		one.fail()
	}
	isComplete := status.ObservedGeneration == d.Generation && status.UpdatedReplicas == *d.Spec.Replicas &&
		status.Replicas == status.UpdatedReplicas && status.AvailableReplicas == status.Replicas
	if isComplete || *d.Spec.Replicas == 0 {
		one.served[pods], one.templates[one.template] = true, true
		if *d.Spec.Replicas > 0 || len(one.known) > 0 { // without replicas, nothing has served yet
			one.known[pods] = true
		}
		one.coming = map[int32]bool{}
		delete(one.failed, pods)
		delete(one.broken, one.template)
	}
	if isComplete && *d.Spec.Replicas > 0 && one.complete.IsZero() && one.pausedSince.IsZero() {
		one.complete = a.at
	}
}

// observe follows a Pod.
func (a *audit) observe(one *audited, version *storage.Version) {
	pod := storage.As[corev1.Pod](version)
	a.pods[pod.Name] = pod
	a.mount(version, &pod.Spec)
	if version.Deleted || pod.DeletionTimestamp != nil {
		delete(a.pods, pod.Name)
		return
	}
	if a.isOf(one, pod) && fails(pod) {
		one.fail()
	}
}

// fails reports whether a Pod cannot be scheduled, or a container does not run.
func fails(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
		return condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse
	}) || slices.ContainsFunc(pod.Status.ContainerStatuses, func(container corev1.ContainerStatus) bool {
		state := container.State
		return state.Terminated != nil || state.Waiting != nil && state.Waiting.Reason != "ContainerCreating"
	})
}

// isOf reports whether a Pod has the Pod template of the Deployment.
func (a *audit) isOf(one *audited, pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return owner != nil && a.sets[owner.UID] == one.template
}

// mount follows what a Pod or a ReplicaSet mounts.
func (a *audit) mount(version *storage.Version, pod *corev1.PodSpec) {
	if version.Deleted || version.Meta().GetDeletionTimestamp() != nil {
		delete(a.mounts, version.Key)
	} else if a.mounts[version.Key] == nil {
		a.mounts[version.Key] = check.MountedConfigMaps(pod)
	}
}

// unmount requires that the operator deletes no ConfigMap that is mounted.
func (a *audit) unmount(version *storage.Version) {
	if !version.Deleted || !version.Requested {
		return
	}
	for by, names := range a.mounts {
		if slices.Contains(names, version.Name) {
			a.errorf("ConfigMap %s is deleted, and %s mounts it", version.Name, by)
			return
		}
	}
}
