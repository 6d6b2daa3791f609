package main

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// workflow has the fields of a workflow that these tests check.
type workflow struct {
	Permissions map[string]string
	Jobs        map[string]struct {
		Permissions map[string]string
		Environment string
		Env         map[string]string
		Steps       []struct {
			ID, Uses, Run string
			Env           map[string]string
		}
	}
}

var (
	makeTarget = regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*(?: [a-z][a-z0-9-]*)*):(?:[^=]|$)`)
	makeCall   = regexp.MustCompile(`\bmake ([a-z][a-z0-9-]*)`)
	pinned     = regexp.MustCompile(`^[\w.-]+/[\w./-]+@[0-9a-f]{40}$`)
)

// wantPermissions are the permissions of jobs. The others have those of their workflow, which can
// only read.
var wantPermissions = map[string]map[string]string{
	"publish.yaml catalog":   {"contents": "read", "packages": "write"},
	"release.yaml release":   {"contents": "write", "packages": "write"},
	"release.yaml sign":      {},
	"release.yaml signature": {"contents": "write"},
}

// TestWorkflows checks that workflows run the make targets that contributors run, that only the
// release runs release-check, that they can write only where they publish, and that actions are
// pinned.
func TestWorkflows(t *testing.T) {
	t.Chdir("../..")
	text, err := os.ReadFile("Makefile")
	must(t, err)
	targets := map[string]bool{}
	for _, names := range makeTarget.FindAllStringSubmatch(string(text), -1) {
		for name := range strings.FieldsSeq(names[1]) {
			targets[name] = true
		}
	}
	if count := strings.Count(string(text), "release-check"); count != 2 { // the target and its recipe
		t.Errorf("the Makefile has release-check %d times: it must not be part of another target", count)
	}
	want := map[string][]string{
		"check.yaml": {"check"}, "nightly.yaml": {"nightly", "weekly"},
		"publish.yaml": {"catalog-latest"}, "release.yaml": {"release-check", "release"},
	}
	files, err := filepath.Glob(".github/workflows/*")
	if err != nil || len(files) != len(want) {
		t.Fatalf("got the workflows %q (%v)", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(t, err)
		var parsed workflow
		must(t, yaml.Unmarshal(text, &parsed))
		if len(parsed.Permissions) != 1 || parsed.Permissions["contents"] != "read" {
			t.Errorf("%s has the permissions %v", file, parsed.Permissions)
		}
		var called []string
		for _, name := range slices.Sorted(maps.Keys(parsed.Jobs)) {
			job := parsed.Jobs[name]
			if want, got := wantPermissions[filepath.Base(file)+" "+name], job.Permissions; !maps.Equal(want, got) || (want == nil) != (got == nil) {
				t.Errorf("%s: job %s has the permissions %v, want %v", file, name, got, want)
			}
			for _, step := range job.Steps {
				if step.Uses != "" && !pinned.MatchString(step.Uses) { // a tag can be moved
					t.Errorf("%s: %s is not pinned to a commit", file, step.Uses)
				}
				for _, call := range makeCall.FindAllStringSubmatch(step.Run, -1) {
					called = append(called, call[1])
					if !targets[call[1]] {
						t.Errorf("%s calls make %s, which does not exist", file, call[1])
					}
				}
			}
		}
		if targets := want[filepath.Base(file)]; !slices.Equal(called, targets) {
			t.Errorf("%s calls make with %q, want %q", file, called, targets)
		}
	}
}
