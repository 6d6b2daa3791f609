package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestPlugin checks that each platform in the krew manifest has an archive with the right name and
// checksum. The archive contains the program for that platform.
func TestPlugin(t *testing.T) {
	manifest, err := os.ReadFile("../../" + krewManifest)
	must(t, err)
	calls := repository(t)
	made := map[string]string{krewManifest: string(manifest), "LICENSE": "license"}
	for _, platform := range pluginPlatforms {
		made[filepath.Join(pluginDir, platform, pluginProgram(platform))] = "program for " + platform
	}
	files(t, made)
	do(t, "plugin")
	built := calls()
	filled, err := os.ReadFile(filepath.Join(pluginDir, "krew.yaml"))
	must(t, err)
	var plugin struct {
		Spec struct {
			Version   string
			Platforms []struct {
				URI, SHA256, Bin string
				Selector         struct{ MatchLabels struct{ OS, Arch string } }
			}
		}
	}
	must(t, yaml.Unmarshal(filled, &plugin))
	if plugin.Spec.Version != "v0.10.0" || len(plugin.Spec.Platforms) != len(pluginPlatforms) {
		t.Fatalf("version %s, %d platforms", plugin.Spec.Version, len(plugin.Spec.Platforms))
	}
	for _, one := range plugin.Spec.Platforms {
		platform := one.Selector.MatchLabels.OS + "_" + one.Selector.MatchLabels.Arch
		archive := filepath.Join(pluginDir, path.Base(one.URI))
		packed, err := os.ReadFile(archive)
		must(t, err)
		if sum := fmt.Sprintf("%x", sha256.Sum256(packed)); sum != one.SHA256 || !strings.Contains(one.URI, "/v0.10.0/") {
			t.Errorf("%s: %s has checksum %s, want %s", platform, one.URI, sum, one.SHA256)
		}
		unpack := untar
		if strings.HasPrefix(platform, windows) {
			unpack = unzip
		}
		if got := unpack(t, packed); got[one.Bin] != "program for "+platform || got["LICENSE"] != "license" {
			t.Errorf("%s has %q", archive, got)
		}
		if !strings.Contains(built, "-X main.version=0.10.0 -o "+filepath.Join(pluginDir, platform, one.Bin)+" ./cmd/kubectl-nginx") {
			t.Errorf("%s is not built: %s", platform, built)
		}
	}
}
