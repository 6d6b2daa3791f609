package main

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/example/nginx-operator/test/harness/repeat"
)

// requireError requires an error that contains a text, or no error if the text is empty.
func requireError(t *testing.T, err error, want string) {
	t.Helper()
	if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		t.Errorf("error %v, want %q", err, want)
	}
}

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
			want := "make cluster-down"
			if accepted := strings.Split(test.accepted, ", "); accepted[0] == command || accepted[len(accepted)-1] == command {
				want = ""
			}
			t.Run(name+", then "+command, func(t *testing.T) { requireError(t, d.refuse(t.Context(), throughOLM), want) })
		}
	}
}

// TestNext checks the commands that the demo prints, which hack/first-command runs on the local
// cluster only.
func TestNext(t *testing.T) {
	for delivery, want := range map[string][]string{
		"/repo": {"    make cluster-exec CMD='busybox wget -qO- http://greeter.nginx-demo.svc:8080'\n", " apply -f " + instanceFile + "\n"},
		"/repo/dist/external": {
			"    kubectl get --raw /api/v1/namespaces/nginx-demo/services/greeter:8080/proxy/\n", " apply -f dist/external/" + instanceFile + "\n",
		},
	} {
		text := (&demo{root: "/repo", delivery: delivery, local: delivery == "/repo"}).next()
		for _, want := range want {
			if !strings.Contains(text, want) {
				t.Errorf("no %q in:\n%s", want, text)
			}
		}
		if left := regexp.MustCompile(`[A-Z]{4,}`).FindString(strings.ReplaceAll(text, "CLUSTER", "")); left != "" {
			t.Errorf("%s is not replaced:\n%s", left, text)
		}
	}
}

// TestSumUp checks that failed requests and too few requests are errors.
func TestSumUp(t *testing.T) {
	requireError(t, sumUp(repeat.Counts{Total: 20}), "")
	requireError(t, sumUp(repeat.Counts{Total: 19}), "shows nothing")
	requireError(t, sumUp(repeat.Counts{Total: 99, Failed: 1, First: errors.New("no answer"), FirstAfter: 300 * time.Millisecond}),
		"1 of 99 requests failed, the first after 0.3 s: no answer")
}
