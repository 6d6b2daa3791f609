package main

import (
	"errors"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	env := func(string) (string, bool) { return "here", true }
	o, err := parse([]string{"--leader-elect", "--webhook-bind-address=127.0.0.1:443", "--webhook-url=https://192.0.2.1:443/"}, env, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !o.leaderElect || o.webhookHost != "127.0.0.1" || o.webhookPort != 443 || o.webhookURL != "https://192.0.2.1:443" || o.namespace != "here" {
		t.Errorf("%+v", o)
	}
	nothing := func(string) (string, bool) { return "", false }
	if o, err = parse(nil, nothing, nil); err != nil || o.namespace != systemNamespace || o.webhookPort != 9443 {
		t.Errorf("%+v, %v", o, err)
	}
	for argument, want := range map[string]string{
		"run":                             `unexpected argument "run"`,
		"--no-such-flag":                  "unknown flag: --no-such-flag",
		"--webhook-bind-address=here":     "--webhook-bind-address",
		"--webhook-bind-address=:0":       "--webhook-bind-address",
		"--webhook-bind-address=:x":       "--webhook-bind-address",
		"--webhook-url=http://192.0.2.1":  "--webhook-url",
		"--webhook-url=https://a.b/there": "--webhook-url",
	} {
		if _, err := parse([]string{argument}, nothing, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", argument, err)
		}
	}
	help := &strings.Builder{}
	if _, err := parse([]string{"--help"}, nothing, help); !errors.Is(err, errHelp) || !strings.Contains(help.String(), "--leader-elect") {
		t.Errorf("%v:\n%s", err, help)
	}
}
