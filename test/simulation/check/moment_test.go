package check

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
)

var moment = time.Date(2000, 1, 1, 1, 0, 0, 0, time.UTC)

// quiet returns a cluster with one ready instance, after a change by the test.
func quiet(change func(*State, *v1alpha2.NginxOperator, *appsv1.Deployment)) *State {
	instance := &v1alpha2.NginxOperator{}
	instance.Name, instance.Generation, instance.Spec.Image = "web", 2, "new"
	instance.Status.Conditions = []metav1.Condition{
		{Type: v1alpha2.ConditionReady, Status: metav1.ConditionTrue, ObservedGeneration: 2},
		{Type: v1alpha2.ConditionDegraded, Status: metav1.ConditionFalse},
		{Type: v1alpha2.ConditionProgressing, Status: metav1.ConditionFalse},
	}
	d := &appsv1.Deployment{}
	d.Name, d.Spec.Replicas = "web", ptr.To[int32](1)
	d.Spec.Template.Spec.Containers = []corev1.Container{{Image: "new"}}
	d.Spec.Template.Spec.TerminationGracePeriodSeconds = ptr.To[int64](30)
	d.Status = appsv1.DeploymentStatus{ReadyReplicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1}
	pod := &corev1.Pod{}
	pod.Name, pod.Labels = "web-1", map[string]string{"app.kubernetes.io/instance": "web"}
	pod.CreationTimestamp = metav1.NewTime(moment)
	out := &State{
		Instances: []*v1alpha2.NginxOperator{instance}, Deployments: []*appsv1.Deployment{d}, Pods: []*corev1.Pod{pod}, Now: moment,
		Exists: map[string]bool{"secret/token": true}, Records: map[string]bool{},
		Children: []*unstructured.Unstructured{child("Service", "web"), child("NetworkPolicy", "web")},
	}
	change(out, instance, d)
	return out
}

func child(kind, name string) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{"kind": kind}}
	out.SetName(name)
	out.SetOwnerReferences([]metav1.OwnerReference{{Kind: "NginxOperator", Name: "web", Controller: ptr.To(true)}})
	return out
}

// degrade sets an instance to Degraded.
func degrade(instance *v1alpha2.NginxOperator, reason, message string) {
	instance.Status.Conditions[0].Status = metav1.ConditionFalse
	instance.Status.Conditions[1] = metav1.Condition{
		Type: v1alpha2.ConditionDegraded, Status: metav1.ConditionTrue, Reason: reason, Message: message,
	}
}

// block adds a reason to status.blockedBy.
func block(instance *v1alpha2.NginxOperator, reason, message string) {
	instance.Status.BlockedBy = append(instance.Status.BlockedBy, v1alpha2.Blocker{Reason: reason, Message: message})
}

// TestMoment verifies that each invariant of a moment finds a cluster that violates it, and that a
// sound cluster violates none.
func TestMoment(t *testing.T) {
	if found := Moment(quiet(func(*State, *v1alpha2.NginxOperator, *appsv1.Deployment) {})); len(found) > 0 {
		t.Errorf("a sound cluster: %v", found)
	}
	const present, past = "until 2000-01-01 03:00:00", "until 2000-01-01 02:00:00"
	for want, broken := range map[string]func(*State, *v1alpha2.NginxOperator, *appsv1.Deployment){
		"the status is empty": func(_ *State, o *v1alpha2.NginxOperator, _ *appsv1.Deployment) { o.Status.Conditions = nil },
		"has 3":               func(_ *State, o *v1alpha2.NginxOperator, _ *appsv1.Deployment) { o.Generation = 3 },
		"listens on 8081": func(s *State, _ *v1alpha2.NginxOperator, _ *appsv1.Deployment) {
			s.Children[1].Object["spec"] = map[string]any{"ingress": []any{map[string]any{"ports": []any{map[string]any{"port": int64(8080)}}}}}
			s.Pods[0].Status.Phase = corev1.PodRunning
			s.Pods[0].Spec.Containers = []corev1.Container{{Ports: []corev1.ContainerPort{{ContainerPort: 8080}, {ContainerPort: 8081}}}}
		},
		"invalid child": func(_ *State, o *v1alpha2.NginxOperator, _ *appsv1.Deployment) {
			block(o, v1alpha2.ReasonInvalidChild, "denied")
		},
		"what is in effect is not stored": func(s *State, o *v1alpha2.NginxOperator, d *appsv1.Deployment) {
			s.Replaced = map[string]bool{"web": true}
			o.Status.LastGoodRevision = &v1alpha2.GoodRevision{Change: "a-1"}
			d.Annotations = map[string]string{annotationChange: "b-2"}
		},
		"there is no ControllerRevision web-3": func(s *State, o *v1alpha2.NginxOperator, d *appsv1.Deployment) {
			s.Replaced = map[string]bool{"web": true}
			o.Status.LastGoodRevision = &v1alpha2.GoodRevision{Change: "a-1"}
			o.Status.StoredRevision = &v1alpha2.StoredRevision{Name: "web-3"}
			d.Annotations = map[string]string{annotationChange: "b-2"}
		},
		"is paused in a rollout": func(_ *State, o *v1alpha2.NginxOperator, d *appsv1.Deployment) {
			o.Status.Conditions[0].Status = metav1.ConditionFalse
			d.Spec.Paused, d.Status.UpdatedReplicas = true, 0
		},
		"the rollout fails": func(s *State, o *v1alpha2.NginxOperator, _ *appsv1.Deployment) {
			degrade(o, v1alpha2.ReasonImagePullFailed, "")
			s.Unproven = map[string]bool{"web": true}
		},
		"1 of 1 replicas ready and 0 updated": func(_ *State, _ *v1alpha2.NginxOperator, d *appsv1.Deployment) {
			d.Status.UpdatedReplicas = 0
		},
		"ConfigMap/web-old is left over": func(s *State, _ *v1alpha2.NginxOperator, _ *appsv1.Deployment) {
			s.Children = append(s.Children, child("ConfigMap", "web-old"))
		},
		"EndpointSlice/web-renamed is left over": func(s *State, _ *v1alpha2.NginxOperator, _ *appsv1.Deployment) {
			s.Children = append(s.Children, child("EndpointSlice", "web-renamed"))
		},
		"ControllerRevision/web-2 is left over": func(s *State, _ *v1alpha2.NginxOperator, d *appsv1.Deployment) {
			d.Annotations = map[string]string{annotationChange: "b-2"}
			s.Records["web-2"] = true
		},
		"has the Pods": func(_ *State, o *v1alpha2.NginxOperator, _ *appsv1.Deployment) { o.Spec.ForceRedeploy = "1" },
		"Ingress exists: true": func(s *State, _ *v1alpha2.NginxOperator, _ *appsv1.Deployment) {
			s.Children = append(s.Children, child("Ingress", "web"))
		},
		"has the entrance": func(_ *State, o *v1alpha2.NginxOperator, _ *appsv1.Deployment) {
			o.Spec.Service = &v1alpha2.Service{Annotations: map[string]string{"example.com/note": "1"}}
		},
		"does not name the missing configmap/conf": func(_ *State, o *v1alpha2.NginxOperator, _ *appsv1.Deployment) {
			o.Spec.Config = &v1alpha2.Config{ConfigMapRef: &v1alpha2.ConfigMapKeyReference{Name: "conf"}}
		},
		"does not name the missing secret/other": func(s *State, _ *v1alpha2.NginxOperator, _ *appsv1.Deployment) {
			waiting := &corev1.ContainerStateWaiting{Message: `secret "other" not found`}
			s.Pods[0].Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: waiting}}}
		},
		"it exists": func(_ *State, o *v1alpha2.NginxOperator, _ *appsv1.Deployment) {
			degrade(o, v1alpha2.ReasonRolledBack, `secret "token" not found`)
		},
		"error that passes": func(_ *State, o *v1alpha2.NginxOperator, _ *appsv1.Deployment) {
			o.Status.FailedRevisions = []v1alpha2.FailedRevision{{Message: "failed to sync secret cache"}}
		},
		present + ", and Pod web-1 has none " + present: func(s *State, o *v1alpha2.NginxOperator, _ *appsv1.Deployment) {
			end := moment.Add(2 * time.Hour)
			o.Status.Certificates = []v1alpha2.Certificate{{SecretName: "cert", NotAfter: metav1.NewTime(end)}}
			s.Certificates = map[string]Certificate{"cert": {NotAfter: end, Written: moment.Add(time.Minute)}}
		},
		past + ", and Pod web-1 has none " + present: func(s *State, o *v1alpha2.NginxOperator, _ *appsv1.Deployment) {
			s.Now = moment.Add(time.Hour)
			o.Status.Certificates = []v1alpha2.Certificate{{SecretName: "cert", NotAfter: metav1.NewTime(s.Now)}}
			s.Certificates = map[string]Certificate{"cert": {NotAfter: moment.Add(2 * time.Hour), Written: moment.Add(time.Minute)}}
		},
		"the spec has 2": func(_ *State, o *v1alpha2.NginxOperator, _ *appsv1.Deployment) { o.Spec.Replicas = ptr.To[int32](2) },
		"no instance rolls": func(_ *State, o *v1alpha2.NginxOperator, _ *appsv1.Deployment) {
			o.Status.Conditions[2].Reason = v1alpha2.ReasonWaitingForFleet
		},
		"a node port that is free": func(s *State, o *v1alpha2.NginxOperator, _ *appsv1.Deployment) {
			block(o, v1alpha2.ReasonInvalidConfiguration, "provided port is already allocated")
			o.Spec.Ports = []v1alpha2.Port{{NodePort: ptr.To[int32](30100)}}
			s.NodePorts = map[int32]time.Time{30100: moment.Add(-time.Hour)}
		},
	} {
		if found := Moment(quiet(broken)); len(found) != 1 || !strings.Contains(found[0], want) {
			t.Errorf("found %v, want one with %q", found, want)
		}
	}
}

// TestSettled verifies that Settled finds an instance that does not match its spec, and Same a
// child that another cluster does not have.
func TestSettled(t *testing.T) {
	sound := func() *State { return quiet(func(*State, *v1alpha2.NginxOperator, *appsv1.Deployment) {}) }
	if found := append(Settled(sound()), Same(sound(), sound())...); len(found) > 0 {
		t.Errorf("a sound cluster: %v", found)
	}
	broken := sound()
	broken.Instances[0].Generation, broken.Children = 3, append(broken.Children, child("Ingress", "web"))
	if found := append(Settled(broken), Same(broken, sound())...); len(found) != 2 {
		t.Errorf("found %v, want two", found)
	}
}

// TestExplained verifies that Explained finds an instance that is Degraded without a fault, or
// waits without a reason.
func TestExplained(t *testing.T) {
	waiting := func(s *State, o *v1alpha2.NginxOperator, _ *appsv1.Deployment) {
		o.Status.Conditions[2].Reason = v1alpha2.ReasonWaitingForFleet
		s.Fleet.Reason = "FleetRollout"
	}
	for name, test := range map[string]struct {
		broken func(*State, *v1alpha2.NginxOperator, *appsv1.Deployment)
		want   int
	}{
		"sound": {func(*State, *v1alpha2.NginxOperator, *appsv1.Deployment) {}, 0},
		"degraded": {func(_ *State, o *v1alpha2.NginxOperator, _ *appsv1.Deployment) {
			degrade(o, v1alpha2.ReasonForbidden, "")
		}, 1},
		"rolled back": {
			func(_ *State, o *v1alpha2.NginxOperator, _ *appsv1.Deployment) {
				degrade(o, v1alpha2.ReasonRolledBack, "")
			}, 0,
		},
		"waits": {waiting, 1},
		"waits for a failure": {func(s *State, o *v1alpha2.NginxOperator, d *appsv1.Deployment) {
			waiting(s, o, d)
			s.Fleet.Reason = "FleetRolloutStopped"
		}, 0},
	} {
		if found := Explained(quiet(test.broken)); len(found) != test.want {
			t.Errorf("%s: found %v, want %d", name, found, test.want)
		}
	}
}

// TestWatcher verifies that an instance must stay rolled back if only spec.paused changes.
func TestWatcher(t *testing.T) {
	rolledBack := quiet(func(_ *State, o *v1alpha2.NginxOperator, _ *appsv1.Deployment) {
		degrade(o, v1alpha2.ReasonRolledBack, "")
	})
	servedWhilePaused := quiet(func(_ *State, o *v1alpha2.NginxOperator, _ *appsv1.Deployment) {
		o.Spec.Paused, o.Status.Conditions[0].Status = true, metav1.ConditionFalse
	})
	paused := quiet(func(_ *State, o *v1alpha2.NginxOperator, d *appsv1.Deployment) {
		o.Spec.Paused, o.Status.Conditions[0].Status = true, metav1.ConditionFalse
		d.Spec.Template.Spec.Containers[0].Image = "good"
	})
	attempted := quiet(func(*State, *v1alpha2.NginxOperator, *appsv1.Deployment) {})
	changed := quiet(func(_ *State, o *v1alpha2.NginxOperator, _ *appsv1.Deployment) { o.Spec.Image = "other" })
	changedBack := quiet(func(_ *State, o *v1alpha2.NginxOperator, _ *appsv1.Deployment) { o.Generation += 2 })
	for next, want := range map[*State]int{rolledBack: 0, paused: 1, servedWhilePaused: 0, attempted: 0, changed: 0, changedBack: 0} {
		var watcher Watcher
		if found := watcher.Moment(rolledBack); len(found) > 0 {
			t.Errorf("found %v at first", found)
		}
		if found := watcher.Moment(next); len(found) != want {
			t.Errorf("found %v, want %d", found, want)
		}
	}
}
