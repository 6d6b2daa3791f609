package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const testTemplate = `schema: olm.template.basic
entries:
- schema: olm.package
  name: nginx-operator
  icon:
    base64data: "@ICON@"
- schema: olm.channel
  package: nginx-operator
  name: stable
  entries:
  - name: nginx-operator.v0.9.0
- schema: olm.channel
  package: nginx-operator
  name: alpha
  entries:
  - name: nginx-operator.v0.9.0
  - name: nginx-operator.v0.10.0
    replaces: nginx-operator.v0.9.0
`

// repository changes to a new Git repository with two releases before this one. Tools on PATH and
// in bin record their calls. repository returns a function that returns and clears the recorded
// calls.
func repository(t *testing.T) (calls func() string) {
	t.Helper()
	root := t.TempDir()
	inDirectory(t, root)
	t.Setenv("PATH", root+"/tools:"+os.Getenv("PATH"))
	t.Setenv("PLATFORMS", "linux/amd64")
	note := "#!/bin/sh\necho $(basename $0) $* >> " + root + "/calls\n"
	files(t, map[string]string{
		"bin/cluster": note, "tools/go": note + "[ \"$2\" != -C ] || touch \"$3/dist/linux_amd64/manager\"\n",
	})
	git(t, "init", "--quiet")
	files(t, map[string]string{"main.go": "first"})
	commit(t)
	for _, release := range []string{"0.9.0", "0.2.0", "0.10.0"} {
		for _, state := range []string{"begun", "done"} {
			files(t, map[string]string{
				"VERSION": release + "\n", "main.go": state + " " + release, "config/manager.yaml": "ghcr.io/example/nginx-operator:v" + release,
				"config/manifests/icon.svg": "<svg/>", "bundle/csv.yaml": "", "docs/reference/a.md": "ghcr.io/example/", "dist/linux_amd64/keep": "",
				"Dockerfile": "FROM scratch\n", "bundle.Dockerfile": "FROM scratch\n", "catalog.Dockerfile": "FROM r/opm:v1\n",
				"catalog/nginx-operator/bundles/v" + release + ".yaml": "", "catalog/template.yaml": testTemplate,
			})
			commit(t)
		}
	}
	return func() string {
		text, err := os.ReadFile(root + "/calls")
		if err != nil {
			return ""
		}
		must(t, os.Remove(root+"/calls"))
		return string(text)
	}
}

// inDirectory changes to a directory, and clears the variables that the command reads.
func inDirectory(t *testing.T, dir string) {
	t.Helper()
	t.Chdir(dir)
	for _, name := range []string{
		"CLUSTER", "IMAGE_REGISTRY", "PLATFORMS", "CONTAINER_TOOL", "USE_IMAGE_DIGESTS", "NGINX_IMAGE", "EXPORTER_IMAGE", "CATALOG_BASE",
	} {
		t.Setenv(name, "")
	}
}

func files(t *testing.T, contents map[string]string) {
	t.Helper()
	for file, content := range contents {
		must(t, os.MkdirAll(filepath.Dir(file), 0o755))
		must(t, os.WriteFile(file, []byte(content), 0o755))
	}
}

func git(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=test", "-c", "user.email=test@example.com"}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v: %s", args, err, out)
	}
}

func commit(t *testing.T) {
	t.Helper()
	git(t, "add", "--all", "--", ":!tools", ":!bin", ":!calls")
	git(t, "commit", "--quiet", "--message=state")
}

// want fails the test if a file does not have the expected content.
func want(t *testing.T, contents map[string]string) {
	t.Helper()
	for file, content := range contents {
		got, err := os.ReadFile(file)
		if diff := cmp.Diff(content, string(got)); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", file, err, diff)
		}
	}
}

func do(t *testing.T, args ...string) {
	t.Helper()
	must(t, run(args))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestOlderReleases checks that older versions are sorted as versions, and do not include the
// current version.
func TestOlderReleases(t *testing.T) {
	repository(t)
	p, err := load()
	must(t, err)
	if diff := cmp.Diff([]string{"0.2.0", "0.9.0"}, p.older); diff != "" || p.next != "0.10.1" {
		t.Errorf("next is %s, older releases: %s", p.next, diff)
	}
}

// TestEnvironment checks that wrong variables are errors.
func TestEnvironment(t *testing.T) {
	inDirectory(t, "../..")
	for _, test := range []struct{ cluster, digests, want string }{
		{"external", "", "needs IMAGE_REGISTRY"},
		{"other", "", "CLUSTER is local or external"},
		{"local", "true", "needs CLUSTER=external"},
		{"external", "yes", "is true or false"},
	} {
		t.Setenv("CLUSTER", test.cluster)
		t.Setenv("USE_IMAGE_DIGESTS", test.digests)
		if err := run([]string{"image", "operator"}); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("CLUSTER=%s USE_IMAGE_DIGESTS=%s: got the error %v", test.cluster, test.digests, err)
		}
	}
}

// TestTree checks that a release is the last commit with its version, and is checked out once per
// registry.
func TestTree(t *testing.T) {
	repository(t)
	do(t, "tree", "previous")
	tree := "dist/releases/v0.9.0"
	want(t, map[string]string{tree + "/main.go": "done 0.9.0", tree + "/config/manager.yaml": "ghcr.io/example/nginx-operator:v0.9.0"})
	files(t, map[string]string{tree + "/built": "by somebody"})
	do(t, "tree", "0.9.0")
	want(t, map[string]string{tree + "/built": "by somebody"})

	t.Setenv("CLUSTER", "external")
	t.Setenv("IMAGE_REGISTRY", "r/me")
	do(t, "tree", "0.9.0")
	want(t, map[string]string{tree + "/config/manager.yaml": "r/me/nginx-operator:v0.9.0", tree + "/docs/reference/a.md": "ghcr.io/example/"})
	if _, err := os.Stat(tree + "/built"); err == nil {
		t.Error("the tree for another registry is not new")
	}
	if err := run([]string{"tree", "7.0.0"}); err == nil || !strings.Contains(err.Error(), "--unshallow") {
		t.Errorf("a version without a commit: got the error %v", err)
	}
}
