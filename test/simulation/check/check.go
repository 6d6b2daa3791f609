// Package check has the invariants of the simulation. It imports only API types, so that it shares
// no defect with the operator.
package check

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// State is the state of a cluster at one moment.
type State struct {
	Instances   []*v1alpha2.NginxOperator
	Deployments []*appsv1.Deployment
	// Children has all objects of the kinds that the operator creates, except its records and the
	// EndpointSlices of the controller.
	Children []*unstructured.Unstructured
	// Records has the names of the ControllerRevisions. Mounted has the names of the ConfigMaps
	// that Pods and ReplicaSets mount.
	Records, Mounted map[string]bool
	// Unproven has the instances whose rollout fails with Pods that never served, although others of
	// the Deployment served before.
	Unproven map[string]bool
	// Replaced has the instances whose Deployment had other Pods that served. One that another
	// client deleted takes its Pods with it.
	Replaced map[string]bool
	// Pods has all Pods.
	Pods []*corev1.Pod
	// Now is the operator's time.
	Now time.Time
	// Exists has the existing ConfigMaps and Secrets, for example "secret/token".
	Exists map[string]bool
	// Certificates has the current certificates, by the name of the Secret.
	Certificates map[string]Certificate
	// NodePorts has the node ports of foreign Services, with the time at which each was released,
	// or zero if it is still allocated.
	NodePorts map[int32]time.Time
	// Refuses is true if the API server rejects writes of children that Pods depend on, or did
	// until a moment ago.
	Refuses bool
	// Inputs counts the changes of everything that the operator reads except specs, and its
	// releases.
	Inputs int
	// Fleet is the operator's report on the rollout of its release.
	Fleet Fleet
}

// Certificate is the content of a Secret.
type Certificate struct {
	// NotAfter distinguishes the certificate from earlier ones.
	NotAfter time.Time
	// Written is the time at which the certificate was written to the Secret, by the API server's
	// clock.
	Written time.Time
}

// Fleet is the OperatorCondition about the fleet rollout.
type Fleet struct{ Reason, Message string }

func (s *State) deployment(name string) *appsv1.Deployment {
	at := slices.IndexFunc(s.Deployments, func(d *appsv1.Deployment) bool { return d.Name == name })
	if at < 0 {
		return nil
	}
	return s.Deployments[at]
}

// Settled returns the reasons why instances do not match their specs, if nothing prevents it.
func Settled(s *State) []string {
	var out []string
	for _, instance := range s.Instances {
		conditions := instance.Status.Conditions
		ready := meta.FindStatusCondition(conditions, v1alpha2.ConditionReady)
		switch {
		case ready == nil || ready.ObservedGeneration != instance.Generation:
			out = append(out, fmt.Sprintf("%s: Ready is not about generation %d", instance.Name, instance.Generation))
		case ready.Status != metav1.ConditionTrue:
			out = append(out, fmt.Sprintf("%s: not Ready: %s: %s", instance.Name, ready.Reason, ready.Message))
		}
		degraded := meta.FindStatusCondition(conditions, v1alpha2.ConditionDegraded)
		if degraded != nil && degraded.Status == metav1.ConditionTrue {
			out = append(out, fmt.Sprintf("%s: Degraded: %s: %s", instance.Name, degraded.Reason, degraded.Message))
		}
		if len(instance.Status.BlockedBy) > 0 {
			out = append(out, fmt.Sprintf("%s: blocked: %+v", instance.Name, instance.Status.BlockedBy))
		}
	}
	return out
}

// Same returns the differences between the children of two clusters that got the same inputs in
// different ways. Differences that the history may cause do not count: ConfigMaps that no
// Deployment mounts, the names of container ports, and the numbers that the API server allocates.
// If an instance has an autoscaler, the number of replicas and the PodDisruptionBudget do not count
// either.
func Same(got, want *State) []string {
	left, right := got.comparable(), want.comparable()
	names := maps.Clone(left)
	maps.Copy(names, right)
	var out []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		switch {
		case left[name] == "":
			out = append(out, name+" is missing")
		case right[name] == "":
			out = append(out, name+" should not exist")
		case left[name] != right[name]:
			a, b := excerpts(left[name], right[name])
			out = append(out, fmt.Sprintf("%s differs:\n  got  %s\n  want %s", name, a, b))
		}
	}
	return out
}

// excerpts returns the parts of two texts around their first difference.
func excerpts(a, b string) (string, string) {
	at := 0
	for at < min(len(a), len(b)) && a[at] == b[at] {
		at++
	}
	cut := func(text string) string { return text[max(at-60, 0):min(at+120, len(text))] }
	return cut(a), cut(b)
}

// comparable returns the compared parts of the children, by kind and name.
func (s *State) comparable() map[string]string {
	mounted := map[string]bool{}
	for _, d := range s.Deployments {
		for _, name := range MountedConfigMaps(&d.Spec.Template.Spec) {
			mounted[name] = true
		}
	}
	autoscaled := map[string]bool{}
	for _, instance := range s.Instances {
		autoscaled[instance.Name] = instance.Spec.Autoscaling != nil
	}
	out := map[string]string{}
	for _, child := range s.Children {
		if metav1.GetControllerOf(child) == nil || child.GetKind() == "ConfigMap" && !mounted[child.GetName()] {
			continue
		}
		spec := specOf(child)
		if autoscaled[child.GetName()] {
			if child.GetKind() == "PodDisruptionBudget" {
				continue
			}
			delete(spec, "replicas")
		}
		raw, err := json.Marshal(map[string]any{
			"spec": withPortNames(spec, portNames(s.deployment(child.GetName()))),
			"data": child.Object["data"], "labels": child.GetLabels(),
		})
		if err != nil {
			panic(err)
		}
		out[child.GetKind()+" "+child.GetName()] = string(raw)
	}
	return out
}

func specOf(child *unstructured.Unstructured) map[string]any {
	spec, _, _ := unstructured.NestedMap(child.Object, "spec")
	if child.GetKind() != "Service" {
		return spec
	}
	for name := range spec {
		if strings.HasPrefix(name, "clusterIP") || strings.HasPrefix(name, "ipFamil") {
			delete(spec, name)
		}
	}
	ports, _ := spec["ports"].([]any)
	for _, port := range ports {
		delete(port.(map[string]any), "nodePort")
	}
	return spec
}
