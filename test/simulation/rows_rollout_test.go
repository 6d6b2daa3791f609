package simulation

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/test/simulation/storage"
	"github.com/example/nginx-operator/test/simulation/world"
)

// rolloutRows are the rows of defects of release 0.7.0 in rollouts, rollbacks, and the fleet.
var rolloutRows = slices.Concat([]tale{
	{"row-01 a failing image leaves the narrowed NetworkPolicy", func(s *story) {
		s.serve()
		sick := s.pods()[0].Name
		s.crash(func(pod *corev1.Pod) bool { return pod.Name == sick })
		s.Run(time.Minute)
		s.edit(func(of *spec) {
			narrow(of)
			of.Service = &v1alpha2.Service{Annotations: map[string]string{"example.com/a": "b"}}
		})
		s.Run(time.Hour)
		s.need(s.isNarrow() && s.service().Annotations["example.com/a"] == "b", "the entrance is not that of the spec")
		s.lose("manifest unknown")
		s.edit(useBadImage)
		s.Run(5 * time.Minute)
		if !s.isNarrow() || s.service().Annotations["example.com/a"] != "b" {
			s.errorf("the NetworkPolicy admits %+v, and the Service has the annotation %q",
				s.policy().Spec.Ingress[0].From, s.service().Annotations["example.com/a"])
		}
	}},
	{"row-01 a failing redeploy leaves the load balancer", func(s *story) {
		s.serve()
		s.Kube.Faults.Unschedulable = true
		s.Kube.Changed()
		s.edit(func(of *spec) { of.Replicas = ptr.To[int32](3) })
		s.Run(10 * time.Minute)
		s.edit(func(of *spec) { of.Service = &v1alpha2.Service{Type: corev1.ServiceTypeLoadBalancer} })
		s.Run(24 * time.Hour)
		s.need(s.service().Spec.Type == corev1.ServiceTypeLoadBalancer, "a day later, the Service is not that of the spec")
		s.edit(func(of *spec) { of.ForceRedeploy = "x" })
		another := func() bool { return s.service().Spec.Type != corev1.ServiceTypeLoadBalancer }
		if s.Until(15*time.Minute, another) {
			s.errorf("the Service is %s again", s.service().Spec.Type)
		}
	}},
	{"row-04 a name that resolves later is retried", func(s *story) {
		s.serve()
		good := s.image()
		s.Kube.Faults.Exits = func(*corev1.Pod) string { return hostNotFound }
		s.edit(useOtherImage)
		s.mustFailWithin(15*time.Minute, good)
		s.heal()
		s.Run(3 * time.Hour)
		s.mustServeOtherImage()
	}},
	{"row-04 an unknown directive is final", func(s *story) {
		s.serve()
		good := s.image()
		s.Kube.Faults.Exits = func(*corev1.Pod) string {
			return `2026/01/01 00:00:00 [emerg] 7#7: unknown directive "retrun" in /etc/nginx-operator/servers.conf:3`
		}
		s.edit(useOtherImage)
		s.Run(time.Minute)
		if s.image() != good || !contains(s.explained(), "retrun") {
			s.errorf("not rolled back: %s", s.explained())
		}
		rolledBack := s.Store.Revision()
		s.Run(6 * time.Hour)
		s.mustNotWrite(rolledBack, otherImage)
	}},
	{"row-04 a name that resolves later stops no fleet", func(s *story) {
		s.serveFleet()
		s.Kube.Faults.Exits = func(pod *corev1.Pod) string {
			if age := time.Since(pod.CreationTimestamp.Time); age < 15*time.Second {
				return hostNotFound
			}
			return ""
		}
		s.release()
		s.Run(time.Hour)
		for _, name := range world.Names {
			if image := s.Deployment(name).Spec.Template.Spec.Containers[0].Image; image != s.Release.Image {
				s.errorf("%s has the image %s; the fleet reports %+v", name, image, s.State().Fleet)
			}
		}
	}},
	{"row-05 a refused NetworkPolicy holds no rollback", func(s *story) {
		s.serve()
		s.lose("i/o timeout")
		s.edit(useBadImage)
		s.Run(10 * time.Second)
		s.Faults.Refuse = map[*storage.Resource]error{storage.NetworkPolicies: world.Denied(storage.NetworkPolicies, "web")}
		s.Remove(storage.NetworkPolicies, "web")
		s.Run(30 * time.Minute)
		s.mustBeRolledBack()
	}},
	{"row-05 a taken node port holds no rollback", func(s *story) {
		s.serve(func(of *spec) {
			of.Service = &v1alpha2.Service{Type: corev1.ServiceTypeNodePort}
			of.Ports = []v1alpha2.Port{{Name: "http", Port: 8080, NodePort: ptr.To[int32](30200)}}
		})
		s.lose("i/o timeout")
		s.edit(func(of *spec) {
			useBadImage(of)
			of.Ports[0].NodePort = ptr.To[int32](30201)
		})
		s.Run(10 * time.Second)
		foreign := &corev1.Service{ObjectMeta: world.Meta("foreign")}
		foreign.Spec.Type = corev1.ServiceTypeNodePort
		foreign.Spec.Ports = []corev1.ServicePort{{Name: "x", Port: 80, NodePort: 30200}}
		if err := s.Write(foreign); err != nil {
			s.Note("the entrance still has its node port: %v", err)
		}
		s.Run(11 * time.Minute) // the deadline is 10 minutes, and the next attempt follows 2 minutes later
		s.mustBeRolledBack()
	}},
	{"row-05 a refused deletion holds no rollback", func(s *story) {
		s.serve(ingress)
		s.denyDeletion(storage.Ingresses)
		s.lose("manifest unknown")
		s.edit(func(of *spec) {
			useBadImage(of)
			of.Expose = nil
		})
		s.Run(time.Hour)
		s.mustBeRolledBack()
	}},
	{"row-05 a refused deletion holds no rollout", func(s *story) {
		s.serve(ingress)
		s.denyDeletion(storage.Ingresses)
		s.edit(func(of *spec) {
			useOtherImage(of)
			of.Expose, of.Replicas = nil, ptr.To[int32](3)
		})
		s.Run(10 * time.Minute)
		if d := s.Deployment("web"); s.image() != otherImage || d.Status.UpdatedReplicas != 3 {
			s.errorf("image %s, %d Pods updated", s.image(), d.Status.UpdatedReplicas)
		}
	}},
	{"row-05 a rollback of a blocked spec is explained", func(s *story) {
		s.Must(s.Write(world.ConfigMap("conf", "nginx.conf", "server { listen 8080; return 200; }")))
		s.serve(configured)
		s.lose("i/o timeout")
		s.edit(useBadImage)
		s.Run(10 * time.Second)
		s.Remove(storage.ConfigMaps, "conf")
		s.Run(30 * time.Minute)
		s.mustBeRolledBack()
		if text := s.explained(); contains(text, "running Pods are unchanged") {
			s.errorf("the Pods were rolled back, and the status says: %s", text)
		}
	}},
	{"row-06 a fix that is applied while the Deployment is paused rolls out", func(s *story) {
		s.serve()
		s.pause(true)
		s.crash(func(pod *corev1.Pod) bool { return pod.Annotations["fix"] == "" })
		s.Run(time.Minute)
		s.edit(func(of *spec) { of.PodTemplate = &v1alpha2.PodTemplate{Annotations: map[string]string{"fix": "yes"}} })
		s.Run(2 * time.Minute)
		s.pause(false)
		s.Run(30 * time.Minute)
		if !s.isReady() || s.Deployment("web").Spec.Template.Annotations["fix"] == "" {
			s.errorf("30 minutes after the Deployment was resumed: %s", s.explained())
		}
	}},
	{"row-07 without its records a failed change stays rolled back", func(s *story) {
		s.serve()
		s.edit(func(of *spec) { of.ForceRedeploy = "two" })
		s.Run(2 * time.Minute)
		s.fail()
		lost := s.Store.Revision()
		for _, found := range s.Store.List(storage.ControllerRevisions, world.Namespace) {
			s.Remove(storage.ControllerRevisions, found.Name)
		}
		s.Run(30 * time.Minute)
		s.mustNotWrite(lost, badImage)
	}},
	{"row-07 without its status a failed change stays rolled back until the user changes it", func(s *story) {
		s.serve()
		s.fail()
		lost := s.Store.Revision()
		s.WipeStatus("web")
		s.Run(30 * time.Minute)
		s.mustNotWrite(lost, badImage)
		if s.condition(v1alpha2.ConditionDegraded).Status != metav1.ConditionTrue {
			s.errorf("the status does not say that the spec is not applied")
		}
		s.edit(useOtherImage)
		s.Run(10 * time.Minute)
		s.mustServeOtherImage()
	}},
	{"row-10 an older view of the object repeats no failed rollout", func(s *story) {
		s.serve()
		s.refuse()
		s.edit(useBadImage)
		failed := func() bool { return len(s.Instance("web").Status.FailedRevisions) > 0 }
		s.need(s.Until(10*time.Minute, failed), "the image does not fail: %s", s.explained())
		at := slices.IndexFunc(s.Store.Since(0), func(v *storage.Version) bool {
			return v.Resource == storage.NginxOperators && len(storage.As[v1alpha2.NginxOperator](v).Status.FailedRevisions) > 0
		})
		before := s.Store.Since(0)[at].Revision - 1
		s.Run(3 * time.Minute)
		restarted := s.Store.Revision()
		s.OldKind = storage.NginxOperators
		s.Restart(before)
		s.Run(5 * time.Minute)
		s.mustNotWrite(restarted, badImage)
	}},
	{"row-14 a Deployment that was deleted while paused and blocked comes back", func(s *story) {
		conf := world.ConfigMap("conf", "nginx.conf", "server { listen 8080; return 200; }")
		s.Must(s.Write(conf))
		s.serve(configured)
		s.edit(func(of *spec) { of.Paused = true })
		s.Run(time.Minute)
		s.Remove(storage.ConfigMaps, "conf")
		s.Run(time.Minute)
		s.Remove(storage.Deployments, "web")
		s.Run(time.Minute)
		s.edit(func(of *spec) { of.Paused = false })
		s.Run(10 * time.Minute)
		if text := s.explained() + s.condition(v1alpha2.ConditionReady).Message; !s.exists(storage.Deployments) && !contains(text, "Deployment") {
			s.errorf("there is no Deployment, and the status does not say so: %s", text)
		}
		s.Must(s.Write(conf))
		s.Run(10 * time.Minute)
		if !s.exists(storage.Deployments) || !s.isReady() {
			s.errorf("with a usable spec, there is no ready Deployment: %s", s.explained())
		}
	}},
	{"row-15 retries of a release take slots", func(s *story) {
		s.serveFleet()
		s.crash(tested)
		for _, name := range world.Names {
			s.Edit(name, func(of *spec) { of.Env = []v1alpha2.EnvVar{{Name: "TEST", Value: "1"}} })
		}
		s.Run(5 * time.Minute)
		for _, name := range world.Names {
			pod := &corev1.Pod{Spec: s.Deployment(name).Spec.Template.Spec}
			s.need(!tested(pod), "%s is not rolled back", name)
		}
		released := s.Store.Revision()
		s.release()
		s.Run(2 * time.Hour)
		tries, tried := map[string]bool{}, map[string]bool{}
		for _, version := range s.Store.Since(released) {
			if version.Resource != storage.Deployments {
				continue
			}
			pod := &corev1.Pod{Spec: storage.As[appsv1.Deployment](version).Spec.Template.Spec}
			delete(tries, version.Name)
			if tested(pod) {
				tries[version.Name], tried[version.Name] = true, true
			}
			if len(tries) > 1 {
				s.errorf("at %s, %d instances retry, and there is one slot", version.At.Format(time.TimeOnly), len(tries))
				break
			}
		}
		if len(s.failures) == 0 && len(tried) < len(world.Names) {
			s.errorf("after two hours, only %v were retried", tried)
		}
	}},
	{"row-16 a quota of ReplicaSets is reported and takes no slot", func(s *story) {
		s.serveFleet()
		s.Kube.Faults.NoReplicaSet = func(d *appsv1.Deployment) string {
			if d.Name != "a" {
				return ""
			}
			return `replicasets.apps "a-1" is forbidden: exceeded quota: q, requested: count/replicasets.apps=1, ` +
				`used: count/replicasets.apps=1, limited: count/replicasets.apps=1`
		}
		s.release()
		s.Run(8 * time.Minute)
		for _, name := range []string{"b", "c"} {
			if image := s.Deployment(name).Spec.Template.Spec.Containers[0].Image; image != s.Release.Image {
				s.errorf("%s still has the image %s", name, image)
			}
		}
		if blocked := s.Instance("a").Status.BlockedBy; len(blocked) == 0 || blocked[0].Reason != v1alpha2.ReasonQuotaExceeded {
			s.errorf("blockedBy is %+v", blocked)
		}
	}},
	{"row-16 an attempt fails although the clock of the API server is behind", func(s *story) {
		s.Store.Skew = -7 * time.Minute
		s.serve(func(of *spec) { of.Rollout = &v1alpha2.Rollout{ProgressDeadlineSeconds: ptr.To[int32](60)} })
		s.lose("i/o timeout")
		s.edit(useBadImage)
		s.Run(6 * time.Minute) // the deadline, the delay of two minutes, the deadline of the attempt, and some time
		s.mustBeRolledBack()
		if failed := s.Instance("web").Status.FailedRevisions; len(failed) != 1 || failed[0].Attempts != 2 {
			s.errorf("failed revisions %+v", failed)
		}
	}},
	{"row-16 a clock behind the last transition delays no status", func(s *story) {
		const slot, least, replicas = 6, 15, 12
		s.serve(func(of *spec) {
			of.Replicas = ptr.To[int32](replicas)
			of.Rollout = &v1alpha2.Rollout{MaxSurge: ptr.To(intstr.FromInt32(1)), MaxUnavailable: ptr.To(intstr.FromInt32(0))}
		})
		s.edit(func(of *spec) { of.ForceRedeploy = "x" })
		s.Run(3 * time.Second)
		instance := s.Instance("web")
		for i := range instance.Status.Conditions {
			instance.Status.Conditions[i].LastTransitionTime.Time = instance.Status.Conditions[i].LastTransitionTime.Add(10 * time.Minute)
		}
		_, err := s.Store.Update(keyOf(storage.NginxOperators), storage.ToMap(instance), "status")
		s.Must(err)
		late, rolled := 0, 0
		for s.Deployment("web").Status.UpdatedReplicas < replicas {
			s.Run(time.Second)
			rolled++
			late++
			if s.Instance("web").Status.UpdatedReplicas == s.Deployment("web").Status.UpdatedReplicas {
				late = 0
			}
			if late > slot {
				s.errorf("for %d seconds, the status has %d updated Pods, and there are %d", late,
					s.Instance("web").Status.UpdatedReplicas, s.Deployment("web").Status.UpdatedReplicas)
				return
			}
		}
		s.need(rolled >= least, "the rollout takes only %d seconds", rolled)
	}},
}, passing())

// hostNotFound is nginx's message while a backend or the DNS starts.
const hostNotFound = `2026/01/01 00:00:00 [emerg] 7#7: host not found in upstream "api" in /etc/nginx-operator/servers.conf:3`

// passing returns a story for each failure of new Pods that passes within seconds.
func passing() (out []tale) {
	waiting := func(reason, message string) func(*story) {
		return func(s *story) {
			s.Kube.Faults.StartError = corev1.ContainerStateWaiting{Reason: reason, Message: message}
		}
	}
	for _, one := range []struct {
		name  string
		fails func(*story)
	}{
		{"a name that resolves later", func(s *story) { s.Kube.Faults.Exits = func(*corev1.Pod) string { return hostNotFound } }},
		{"a reserved container name", waiting("CreateContainerError",
			`failed to reserve container name "nginx_web-1_shop_0": name "nginx_web-1_shop_0" is reserved for "abc"`)},
		{"a deadline of the runtime", waiting("CreateContainerError", "rpc error: code = DeadlineExceeded desc = context deadline exceeded")},
		{"a deadline of a shim", waiting("RunContainerError",
			"failed to create containerd task: failed to create shim task: context deadline exceeded")},
	} {
		out = append(out, tale{"row-04 " + one.name + " fails no change", func(s *story) {
			s.serve()
			one.fails(s)
			edited := s.Store.Revision()
			s.edit(useOtherImage)
			s.Run(25 * time.Second)
			s.heal()
			s.Run(10 * time.Minute)
			s.mustServeOtherImage()
			for _, version := range s.Store.Since(edited) {
				if version.Resource == storage.NginxOperators && len(storage.As[v1alpha2.NginxOperator](version).Status.FailedRevisions) > 0 {
					s.errorf("at %s, the change has failed", version.At.Format(time.TimeOnly))
					break
				}
			}
		}})
	}
	return out
}

const otherImage = "registry.example/own:1"

func useOtherImage(of *spec) { of.Image = otherImage }

func (s *story) mustServeOtherImage() {
	s.t.Helper()
	if s.image() != otherImage || !s.isReady() {
		s.errorf("the change is not applied: image %s, %s", s.image(), s.explained())
	}
}

func (s *story) mustBeRolledBack() {
	s.t.Helper()
	if s.image() == badImage {
		s.errorf("not rolled back: %s", s.explained())
	}
}

// mustFailWithin records a failure unless the Deployment gets otherImage, and then the good one.
func (s *story) mustFailWithin(timeout time.Duration, good string) {
	s.t.Helper()
	s.need(s.Until(time.Minute, func() bool { return s.image() == otherImage }), "the change is not applied: %s", s.explained())
	if !s.Until(timeout, func() bool { return s.image() == good }) {
		s.errorf("not rolled back after %s: %s", timeout, s.explained())
	}
}

// mustNotWrite records a failure if the Deployment got an image after a resource version.
func (s *story) mustNotWrite(after int64, image string) {
	for _, version := range s.Store.Since(after) {
		if version.Resource == storage.Deployments && !version.Deleted &&
			storage.As[appsv1.Deployment](version).Spec.Template.Spec.Containers[0].Image == image {
			s.errorf("at %s, the Deployment got the failed image %s again", version.At.Format(time.TimeOnly), image)
			return
		}
	}
}

// refuse makes nginx refuse its configuration with badImage. Such a failure is final.
func (s *story) refuse() {
	s.Kube.Faults.Exits = func(pod *corev1.Pod) string {
		if pod.Spec.Containers[0].Image != badImage {
			return ""
		}
		return `2026/01/01 00:00:00 [emerg] 7#7: unknown directive "retrun" in /etc/nginx-operator/servers.conf:3`
	}
}

// fail applies badImage, and waits until the change is rolled back. The failure is final.
func (s *story) fail() {
	s.t.Helper()
	good := s.image()
	s.refuse()
	s.edit(useBadImage)
	s.Run(time.Minute)
	s.need(s.image() == good, "not rolled back: %s", s.explained())
}

func (s *story) heal() {
	s.Heal()
	s.Run(time.Second)
}

// crash makes nginx crash in some Pods.
func (s *story) crash(of func(*corev1.Pod) bool) {
	s.Kube.Faults.Crashes = of
	s.Kube.Changed()
}

// tested reports whether a Pod has the environment variable TEST.
func tested(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Containers[0].Env, func(e corev1.EnvVar) bool { return e.Name == "TEST" })
}

func (s *story) pods() []*corev1.Pod { return s.State().Pods }

// pause pauses or resumes the Deployment, like kubectl rollout.
func (s *story) pause(paused bool) {
	d := s.Deployment("web")
	d.Spec.Paused = paused
	s.Must(s.Write(d))
}

// serveFleet creates the instances of a fleet, and runs until a minute after they are ready.
func (s *story) serveFleet() {
	s.t.Helper()
	for _, name := range world.Names {
		serve(s.t, s.World, name, func(*spec) {})
	}
	s.Run(time.Minute)
}

// release replaces the operator by a release with another default image.
func (s *story) release() {
	s.Release.Image = "registry.example/nginx:2"
	s.Released = append(s.Released, time.Now())
	s.Restart(0)
}

func (s *story) service() *corev1.Service {
	out, _ := world.Get[corev1.Service](s.World, storage.Services, "web")
	return out
}

func (s *story) policy() *networkingv1.NetworkPolicy {
	out, _ := world.Get[networkingv1.NetworkPolicy](s.World, storage.NetworkPolicies, "web")
	return out
}

// narrow admits only some Pods to the port of the instance.
func narrow(of *spec) {
	of.NetworkPolicy = &v1alpha2.NetworkPolicy{From: []networkingv1.NetworkPolicyPeer{
		{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}},
	}}
}

// isNarrow reports whether the NetworkPolicy is that of narrow.
func (s *story) isNarrow() bool {
	rules := s.policy().Spec.Ingress
	return len(rules) > 0 && len(rules[0].From) > 0
}

func configured(of *spec) {
	of.Config = &v1alpha2.Config{ConfigMapRef: &v1alpha2.ConfigMapKeyReference{Name: "conf", Key: "nginx.conf"}}
}
