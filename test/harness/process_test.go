package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestSummary checks that a summary has the last errors of a process and its last line.
func TestSummary(t *testing.T) {
	const why = "nginx-operator: operator ended: failed to listen"
	for name, test := range map[string]struct{ log, want string }{
		"nothing":   {},
		"one line":  {why, why},
		"no errors": {"a\nb\n" + why, "a\nb\n" + why},
		"errors": {
			strings.Repeat("started\n", 9) + strings.Repeat(`{"level":"ERROR"}`+"\n", 9) + "stopped\n" + why + "\n",
			strings.Repeat(`{"level":"ERROR"}`+"\n", 5) + why,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := summary(test.log); got != test.want {
				t.Errorf("want\n%s\ngot\n%s", test.want, got)
			}
		})
	}
}

// TestRuntimeSettings checks that tests start the manager with the settings of its manifest.
func TestRuntimeSettings(t *testing.T) {
	manifest := string(Must1(os.ReadFile("../../config/manager/manager.yaml"))(t))
	for _, setting := range runtimeSettings {
		name, value, _ := strings.Cut(setting, "=")
		if want := fmt.Sprintf("- name: %s\n          value: %q\n", name, value); !strings.Contains(manifest, want) {
			t.Errorf("%s: the manifest does not have %q", setting, want)
		}
	}
}

// TestManagerThatEnds checks that a manager that ends before it is ready is started again with
// other addresses.
func TestManagerThatEnds(t *testing.T) {
	dir := t.TempDir()
	binary, starts := filepath.Join(dir, "manager"), filepath.Join(dir, "starts")
	script := "#!/bin/sh\necho \"$1\" >> " + starts + "\necho no room >&2\nexit 3\n"
	Must(t, os.WriteFile(binary, []byte(script), 0o700)) //nolint:gosec // a program
	service := Must1(NewService())(t)
	defer service.Close()
	_, err := StartManager(ManagerOptions{Binary: binary, Dir: dir, Service: service})
	if err == nil || !strings.Contains(err.Error(), "it ended (exit status 3)\nno room") {
		t.Errorf("want why it ended, got %v", err)
	}
	lines := strings.Fields(string(Must1(os.ReadFile(starts))(t)))
	if len(lines) != 3 || lines[0] == lines[1] {
		t.Errorf("started with %q, want three times and with different addresses", lines)
	}
	if _, err := startProcess(exec.Command(filepath.Join(dir, "none")), dir, "none"); err == nil {
		t.Error("want an error for a program that is not there")
	}
}
