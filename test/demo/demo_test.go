package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// on returns an upgrade with a fake kubectl. answers maps prefixes of commands to their output.
func on(answers map[string]string) *upgrade {
	return &upgrade{demo: &demo{kubectl: func(_ context.Context, _ string, args ...string) (string, error) {
		for start, answer := range answers {
			if strings.HasPrefix(strings.Join(args, " "), start) {
				return answer, nil
			}
		}
		return "", nil
	}}}
}

// TestRefuse checks that the demo does not install the operator if it is installed in another way.
func TestRefuse(t *testing.T) {
	const get = "get --ignore-not-found "
	const subscriptions, deployment, crd = get + "subscriptions.operators.coreos.com", get + "deployment", get + "crd"
	for name, test := range map[string]struct {
		answers map[string]string
		want    string
	}{
		"nothing":                {nil, ""},
		"installed by the demo":  {map[string]string{subscriptions: operatorNamespace + "\n", deployment: "it"}, ""},
		"installed elsewhere":    {map[string]string{subscriptions: "theirs\n"}, "theirs"},
		"installed here as well": {map[string]string{subscriptions: operatorNamespace + "\ntheirs\n"}, "theirs"},
		"without OLM":            {map[string]string{deployment: "it"}, "without OLM"},
		"only the API":           {map[string]string{crd: "it"}, "make cluster-down"},
	} {
		t.Run(name, func(t *testing.T) {
			u := on(test.answers)
			err := errors.Join(u.refuseOtherOperators(t.Context()), u.refuseUsedCluster(t.Context()))
			requireError(t, err, test.want)
		})
	}
}

// requireError requires an error that contains a text, or no error if the text is empty.
func requireError(t *testing.T, err error, want string) {
	t.Helper()
	if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		t.Errorf("error %v, want %q", err, want)
	}
}

// TestRead checks that a read requires each instance with its own port.
func TestRead(t *testing.T) {
	ports, manifest := fleet()
	if len(ports) != bystanders+1 || strings.Count(manifest, "---\n") != len(ports) || strings.Count(manifest, "replicas: 2") != 1 {
		t.Errorf("%d instances:\n%s", len(ports), manifest)
	}
	want := map[string]int32{"a": 1, "b": 2}
	const a, b = `{"metadata":{"name":"a"},"spec":{"port":1}}`, `{"metadata":{"name":"b"},"spec":{"port":2}}`
	for list, isRight := range map[string]bool{
		`{"items":[` + a + `,` + b + `]}`: true, `{"items":[` + a + `]}`: false, `{"items":[` + b + `,` + b + `]}`: false, `no JSON`: false,
	} {
		if err := on(map[string]string{"get --raw ": list}).read(t.Context(), want); (err == nil) != isRight {
			t.Errorf("%s: error %v", list, err)
		}
	}
}

// TestCounter checks that a client fails if a request failed, or if it sent too few requests.
func TestCounter(t *testing.T) {
	for _, test := range []struct {
		failing int
		period  time.Duration
		want    string
	}{{-1, time.Minute, ""}, {3, time.Minute, "the first after 0.3 s: no answer"}, {-1, time.Second, "shows nothing"}} {
		synctest.Test(t, func(t *testing.T) {
			c := startCounter(t.Context(), "reads", func(_ context.Context, n int) error {
				if n == test.failing {
					return errors.New("no answer")
				}
				return nil
			})
			time.Sleep(test.period)
			err := c.finish()
			requireError(t, err, test.want)
		})
	}
}
