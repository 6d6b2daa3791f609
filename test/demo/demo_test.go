package main

import (
	"context"
	"slices"
	"strings"
	"testing"
)

// TestRefuse checks that the demo does not install the operator if it is installed in another way.
func TestRefuse(t *testing.T) {
	const both = "make demo, make demo-olm"
	for name, test := range map[string]struct{ deployments, subscriptions, accepted string }{
		"nothing":             {"", "", both},
		"make demo":           {"nginx-operator-system=", "", "make demo"},
		"make demo-olm":       {"nginx-operator-system=nginx-operator.v1.2.3", "nginx-operator-system", "make demo-olm"},
		"OLM is not finished": {"", "nginx-operator-system", "make demo-olm"},
		"OLM elsewhere":       {"", "theirs", ""},
		"OLM here and there":  {"", "nginx-operator-system theirs", ""},
		"no Subscription":     {"nginx-operator-system=nginx-operator.v1.2.3", "", ""},
		"Helm":                {"nginx-operator-system=nginx-operator-1.2.3", "", ""},
		"kubectl elsewhere":   {"theirs=", "", ""},
	} {
		for command, throughOLM := range map[string]bool{"make demo": false, "make demo-olm": true} {
			d := &demo{local: true, run: func(_ context.Context, _, _ string, args ...string) (string, error) {
				return map[string]string{
					"deployments": test.deployments, "crd": test.subscriptions, "subscriptions.operators.coreos.com": test.subscriptions,
				}[args[2]], nil
			}}
			accepted := slices.Contains(strings.Split(test.accepted, ", "), command)
			t.Run(name+", then "+command, func(t *testing.T) {
				err := d.refuse(t.Context(), throughOLM)
				if accepted != (err == nil) || !accepted && !strings.Contains(err.Error(), "make cluster-down") {
					t.Errorf("error %v", err)
				}
			})
		}
	}
}
