package main

import (
	"crypto/sha256"
	"fmt"
	"path"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestPlugin checks that each platform in the krew manifest has an archive with the right name and
// checksum. The archive contains the program for that platform.
func TestPlugin(t *testing.T) {
	p := realRelease(t)
	made, err := p.pluginFiles()
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
	must(t, yaml.Unmarshal(made["krew.yaml"], &plugin))
	if plugin.Spec.Version != "v"+p.version || len(plugin.Spec.Platforms) != len(pluginPlatforms) {
		t.Fatalf("version %s, %d platforms", plugin.Spec.Version, len(plugin.Spec.Platforms))
	}
	for _, one := range plugin.Spec.Platforms {
		platform := one.Selector.MatchLabels.OS + "_" + one.Selector.MatchLabels.Arch
		archive := made[path.Base(one.URI)]
		if sum := fmt.Sprintf("%x", sha256.Sum256(archive)); sum != one.SHA256 || !strings.Contains(one.URI, "/v"+p.version+"/") {
			t.Errorf("%s: %s has checksum %s, want %s", platform, one.URI, sum, one.SHA256)
		}
		unpack := untar
		if strings.HasPrefix(platform, windows) {
			unpack = unzip
		}
		if got := unpack(t, archive); got[one.Bin] != "program for "+platform || got["LICENSE"] == "" {
			t.Errorf("%s has %q", one.URI, got)
		}
	}
}
