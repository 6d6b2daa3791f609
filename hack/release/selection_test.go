package main

import (
	"os"
	"strings"
	"testing"
)

// TestResolve checks that the published release is the newest one, and the previous release the one
// that the catalog replaces.
func TestResolve(t *testing.T) {
	repository(t)
	files(t, map[string]string{
		"catalog/template.yaml": strings.Replace(testTemplate, "replaces: nginx-operator.v0.9.0", "replaces: nginx-operator.v0.2.0", 1),
	})
	p, err := load()
	must(t, err)
	for release, want := range map[string]string{"published": "0.9.0", "previous": "0.2.0", "0.9.0": "0.9.0"} {
		if got, err := p.resolve(release); err != nil || got != want {
			t.Errorf("%s is %q, want %s (%v)", release, got, want, err)
		}
	}
}

// TestSomeOlderImages checks that only the given releases are built, and that all are checked out.
func TestSomeOlderImages(t *testing.T) {
	calls := repository(t)
	files(t, map[string]string{".cluster/state": ""})
	do(t, "older-images", "published", "previous")
	if text := calls(); strings.Contains(text, "v0.2.0") || strings.Count(text, "-X main.version=0.9.0") != 1 {
		t.Errorf("got the calls %s", text)
	}
	want(t, map[string]string{"dist/releases/v0.2.0/main.go": "done 0.2.0"})
}

// TestPluginOfSomePlatforms checks that the krew manifest needs all platforms.
func TestPluginOfSomePlatforms(t *testing.T) {
	repository(t)
	t.Setenv("PLUGIN_PLATFORMS", "linux_amd64")
	files(t, map[string]string{
		krewManifest: "# template\nkind: Plugin\n", "LICENSE": "license", pluginDir + "/linux_amd64/kubectl-nginx": "program",
	})
	do(t, "plugin")
	if _, err := os.Stat(pluginDir + "/kubectl-nginx_linux_amd64.tar.gz"); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(pluginDir + "/krew.yaml"); err == nil {
		t.Error("krew.yaml lacks the checksums of five platforms")
	}
	t.Setenv("PLUGIN_PLATFORMS", "plan9_mips")
	if err := run([]string{"plugin"}); err == nil {
		t.Error("an unknown platform is accepted")
	}
}
