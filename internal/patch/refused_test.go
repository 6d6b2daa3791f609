package patch

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/example/nginx-operator/internal/ratchet"
)

// refusedSinceStored returns patches, and the fields of the errors about them.
func refusedSinceStored() map[string]struct {
	kind            string
	patches, fields []string
} {
	const first, second = "spec.patches[0].patch", "spec.patches[1].patch"
	return map[string]struct {
		kind            string
		patches, fields []string
	}{
		"labels":   {"NetworkPolicy", []string{"metadata: {labels: {team: shop}, annotations: {a: b}}"}, nil},
		"the same": {"NetworkPolicy", []string{"spec: {policyTypes: [Ingress]}"}, nil},
		"a type": {
			"NetworkPolicy",
			[]string{"[{op: add, path: /spec/policyTypes/-, value: Egress}]"},
			[]string{first},
		},
		"an open rule": {
			"NetworkPolicy",
			[]string{"[{op: add, path: /spec/ingress, value: [{}]}]"},
			[]string{first},
		},
		"egress": {
			"NetworkPolicy",
			[]string{"{}", "spec: {policyTypes: [Ingress, Egress], egress: [{}]}"},
			[]string{second, second},
		},
		"egress without the type": {
			"NetworkPolicy",
			[]string{"spec: {egress: [{to: [{ipBlock: {cidr: 0.0.0.0/0}}]}]}"},
			[]string{first},
		},
		"two that undo each other": {
			"NetworkPolicy", []string{"[{op: add, path: /spec/egress, value: [{}]}]", "[{op: remove, path: /spec/egress}]"}, nil,
		},
		"two, of which the second depends on the first": {
			"NetworkPolicy",
			[]string{"[{op: add, path: /spec/egress, value: []}]", "[{op: add, path: /spec/egress, value: [{}]}]"},
			[]string{second},
		},
		"automount": {
			"Deployment",
			[]string{pod("automountServiceAccountToken: true")},
			[]string{first},
		},
		"automount as it is": {"Deployment", []string{pod("automountServiceAccountToken: false")}, nil},
		"automount removed":  {"Deployment", []string{pod("automountServiceAccountToken: null")}, []string{first}},
		"automount in another spelling": {
			"Deployment",
			[]string{`{"spec": {"template": {"spec": {"automountService\u0041ccountToken": true}}}}`},
			[]string{first},
		},
		"no YAML": {"Deployment", []string{"{"}, nil},
	}
}

// TestRefusedSinceStored verifies the patches that 0.5.0 accepted and this release refuses: a
// NetworkPolicy that allows more, and a ServiceAccount token in every container. A tenant can write
// such patches. The error references the patch that causes the change. For the messages, see
// TestRefused.
func TestRefusedSinceStored(t *testing.T) {
	for name, test := range refusedSinceStored() {
		t.Run(name, func(t *testing.T) {
			var fields []string
			for _, err := range errorsOf(Refused(patches(test.kind, test.patches...), children(), at)) {
				fields = append(fields, err.Field)
			}
			if !slices.Equal(fields, test.fields) {
				t.Errorf("want %q, got %q", test.fields, fields)
			}
			if _, errs := Apply(patches(test.kind, test.patches...), children(), at); name != "no YAML" && len(errs) > 0 {
				t.Errorf("0.5.0 applied it: %v", errs)
			}
		})
	}
}

func errorsOf(refusals []ratchet.Refusal) field.ErrorList {
	var errs field.ErrorList
	for _, refusal := range refusals {
		errs = append(errs, refusal.Err)
	}
	return errs
}

// TestRefusedRatchets verifies that a stored object may move, split, and extend its patches. Only
// another effect on the field is new.
func TestRefusedRatchets(t *testing.T) {
	const egress = "[{op: add, path: /spec/egress, value: [{ports: [{port: 53, protocol: UDP}]}]}]"
	stored := []string{egress}
	for name, test := range map[string]struct {
		now   []string
		added int
	}{
		"as stored":          {[]string{egress}, 0},
		"in another place":   {[]string{"metadata: {labels: {a: b}}", egress}, 0},
		"in another form":    {[]string{"spec: {egress: [{ports: [{protocol: UDP, port: 53}]}]}"}, 0},
		"one rule more":      {[]string{egress, "[{op: add, path: /spec/egress/-, value: {}}]"}, 1},
		"another rule":       {[]string{"spec: {egress: [{}]}"}, 1},
		"a type in addition": {[]string{egress, "spec: {policyTypes: [Ingress, Egress]}"}, 1},
		"removed":            {[]string{}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			before := Refused(patches("NetworkPolicy", stored...), children(), at)
			now := Refused(patches("NetworkPolicy", test.now...), children(), at)
			if added, _ := ratchet.Split(before, now); len(added) != test.added {
				t.Errorf("%d are new, want %d: %v", len(added), test.added, added)
			}
		})
	}
	const value = "NetworkPolicy\x00spec.egress\x00" + `{"ports":[{"port":53,"protocol":"UDP"}]}`
	if refusals := Refused(patches("NetworkPolicy", egress), children(), at); len(refusals) != 1 || refusals[0].Value != value {
		t.Errorf("the status stores hashes of other values: %v", refusals)
	}
}
