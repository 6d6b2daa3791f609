package check

import (
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

func at(minutes int, change Change) Change {
	change.At = moment.Add(time.Duration(minutes) * time.Minute)
	return change
}

// TestTemplates verifies that a Pod template may change once per request.
func TestTemplates(t *testing.T) {
	ask := Change{Instance: "web", Asks: true}
	first, second := Change{Instance: "web", Child: "Deployment", Spec: 1}, Change{Instance: "web", Child: "Deployment", Spec: 2}
	if found := Templates([]Change{ask, first, first, ask, second}); len(found) > 0 {
		t.Errorf("found %v", found)
	}
	if found := Templates([]Change{ask, first, second}); len(found) != 1 {
		t.Errorf("found %v, want one", found)
	}
}

// TestReturns verifies that a child may get an earlier spec again only if that was requested.
func TestReturns(t *testing.T) {
	ask, first, second := Change{Instance: "web", Asks: true}, Change{Instance: "web", Child: "Service", Spec: 1},
		Change{Instance: "web", Child: "Service", Spec: 2}
	between := Change{Instance: "web", Child: "Service", Spec: 3}
	admits := func(numbers ...int32) Change {
		rule := networkingv1.NetworkPolicyIngressRule{}
		for _, number := range numbers {
			rule.Ports = append(rule.Ports, networkingv1.NetworkPolicyPort{Port: ptr.To(intstr.FromInt32(number))})
		}
		spec := networkingv1.NetworkPolicySpec{Ingress: []networkingv1.NetworkPolicyIngressRule{rule}}
		return Change{Instance: "web", Child: "NetworkPolicy", Spec: spec}
	}
	ofOldPods := func(change Change) Change {
		change.OldPods = true
		return change
	}
	for name, test := range map[string]struct {
		history []Change
		want    int
	}{
		"asked":    {[]Change{at(0, ask), at(0, first), at(1, ask), at(1, second), at(2, ask), at(2, first)}, 0},
		"in steps": {[]Change{at(0, ask), at(0, first), at(1, ask), at(1, between), at(2, second), at(3, ask), at(3, between), at(4, first)}, 0},
		"older":    {[]Change{at(0, ask), at(0, first), at(1, ask), at(1, second), at(2, first)}, 1},
		"by another": {
			[]Change{at(0, ask), at(0, first), at(1, ask), at(1, second), at(2, Change{Instance: "other", Asks: true}), at(2, first)}, 1,
		},
		"opened for old Pods": {
			[]Change{at(0, ask), at(0, admits(80, 81)), at(1, admits(80)), at(2, ofOldPods(admits(80, 81))), at(2, admits(80))}, 0,
		},
		"opened": {
			[]Change{at(0, ask), at(0, admits(80, 81)), at(1, admits(80)), at(2, admits(80, 81))}, 1,
		},
		"closed for old Pods": {
			[]Change{at(0, ask), at(0, admits(80)), at(0, admits(80, 81)), at(2, ofOldPods(admits(80)))}, 1,
		},
	} {
		if found := Returns(test.history); len(found) != test.want {
			t.Errorf("%s: found %v, want %d", name, found, test.want)
		}
	}
}
