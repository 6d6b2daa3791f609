package check

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// TestInvariants verifies that each invariant finds a cluster that violates it, and accepts a sound
// one.
func TestInvariants(t *testing.T) {
	state := func(change func(*State)) *State {
		instance := &v1alpha2.NginxOperator{}
		instance.Name, instance.Spec.Replicas = "web", ptr.To[int32](2)
		instance.Status.Conditions = []metav1.Condition{{Type: v1alpha2.ConditionReady, Status: metav1.ConditionTrue}}
		d := &appsv1.Deployment{}
		d.Name, d.Spec.Replicas = "web", ptr.To[int32](2)
		d.Status.ReadyReplicas, d.Status.UpdatedReplicas = 2, 2
		out := &State{Instances: []*v1alpha2.NginxOperator{instance}, Deployments: []*appsv1.Deployment{d}}
		change(out)
		return out
	}
	child := func(kind, name string) *unstructured.Unstructured {
		out := &unstructured.Unstructured{Object: map[string]any{"kind": kind}}
		out.SetName(name)
		out.SetOwnerReferences([]metav1.OwnerReference{{Kind: "NginxOperator", Name: "web", Controller: ptr.To(true)}})
		return out
	}
	sound := state(func(*State) {})
	for name, test := range map[string]struct {
		check  func(*State) []string
		broken func(*State)
	}{
		"settled":  {Settled, func(s *State) { s.Instances[0].Generation = 2 }},
		"truthful": {Truthful, func(s *State) { s.Deployments[0].Status.ReadyReplicas = 1 }},
		"replicas": {Replicas, func(s *State) { s.Deployments[0].Spec.Replicas = ptr.To[int32](1) }},
		"stale":    {Stale, func(s *State) { s.Children = append(s.Children, child("Ingress", "web")) }},
		"same": {
			func(s *State) []string { return Same(s, sound) },
			func(s *State) { s.Children = append(s.Children, child("Service", "web")) },
		},
	} {
		if found := test.check(sound); len(found) > 0 {
			t.Errorf("%s: a sound cluster breaks it: %v", name, found)
		}
		if found := test.check(state(test.broken)); len(found) != 1 {
			t.Errorf("%s: found %v, want one", name, found)
		}
	}
}
