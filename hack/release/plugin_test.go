package main

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
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
	if err != nil {
		t.Fatal(err)
	}
	calls := repository(t)
	made := map[string]string{krewManifest: string(manifest), "LICENSE": "license"}
	for _, platform := range pluginPlatforms {
		made[filepath.Join(pluginDir, platform, pluginName)] = "program for " + platform
	}
	files(t, made)
	do(t, "plugin")
	built := calls()
	filled, err := os.ReadFile(filepath.Join(pluginDir, "krew.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var plugin struct {
		Spec struct {
			Version   string
			Platforms []struct {
				URI, SHA256, Bin string
				Selector         struct{ MatchLabels struct{ OS, Arch string } }
			}
		}
	}
	if err := yaml.Unmarshal(filled, &plugin); err != nil {
		t.Fatal(err)
	}
	if plugin.Spec.Version != "v0.10.0" || len(plugin.Spec.Platforms) != len(pluginPlatforms) {
		t.Fatalf("version %s, %d platforms", plugin.Spec.Version, len(plugin.Spec.Platforms))
	}
	for _, one := range plugin.Spec.Platforms {
		platform := one.Selector.MatchLabels.OS + "_" + one.Selector.MatchLabels.Arch
		archive := filepath.Join(pluginDir, path.Base(one.URI))
		packed, err := os.ReadFile(archive)
		if err != nil {
			t.Fatal(err)
		}
		if sum := fmt.Sprintf("%x", sha256.Sum256(packed)); sum != one.SHA256 || !strings.Contains(one.URI, "/v0.10.0/") {
			t.Errorf("%s: %s has checksum %s, want %s", platform, one.URI, sum, one.SHA256)
		}
		if program := unpack(t, archive, one.Bin); program != "program for "+platform {
			t.Errorf("%s has %q", archive, program)
		}
		if !strings.Contains(built, "-X main.version=0.10.0 -o "+filepath.Join(pluginDir, platform, pluginName)+" ./cmd/kubectl-nginx") {
			t.Errorf("%s is not built: %s", platform, built)
		}
	}
}

// unpack returns the content of a file in an archive. It fails the test if the file is not
// executable.
func unpack(t *testing.T, archive, name string) string {
	t.Helper()
	file, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	plain, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	for reader := tar.NewReader(plain); ; {
		header, err := reader.Next()
		if err != nil {
			t.Fatalf("%s has no %s: %v", archive, name, err)
		}
		if header.Name == name {
			text, err := io.ReadAll(reader)
			if err != nil || header.Mode&0o111 == 0 {
				t.Fatalf("%s: mode %o, %v", name, header.Mode, err)
			}
			return string(text)
		}
	}
}
