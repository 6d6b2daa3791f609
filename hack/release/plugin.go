package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const (
	pluginName   = "kubectl-nginx"
	pluginDir    = "dist/" + pluginName
	krewManifest = "cmd/" + pluginName + "/krew.yaml"
)

// pluginPlatforms are the platforms of workstations. They do not depend on the platforms of the
// images.
var pluginPlatforms = []string{"linux_amd64", "linux_arm64", "darwin_amd64", "darwin_arm64"}

// packPlugin builds the kubectl plugin for each platform, packs it for krew, and writes the krew
// manifest with the checksums.
func (p *project) packPlugin() error {
	manifest, err := os.ReadFile(krewManifest)
	if err != nil {
		return fmt.Errorf("failed to read krew's manifest: %w", err)
	}
	filled := []string{"@VERSION@", p.version}
	for _, platform := range pluginPlatforms {
		program := filepath.Join(pluginDir, platform, pluginName)
		system, arch, _ := strings.Cut(platform, "_")
		err := execute([]string{
			"env", "CGO_ENABLED=0", "GOOS=" + system, "GOARCH=" + arch, "go", "build", "-trimpath",
			"-ldflags=-s -w -X main.version=" + p.version, "-o", program, "./cmd/" + pluginName,
		})
		if err != nil {
			return err
		}
		packed, err := pack(program, "LICENSE")
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(pluginDir, pluginName+"_"+platform+".tar.gz"), packed, 0o644); err != nil {
			return fmt.Errorf("failed to write the archive: %w", err)
		}
		filled = append(filled, "@"+platform+"@", fmt.Sprintf("%x", sha256.Sum256(packed)))
	}
	// Drop the first line, which describes the template.
	_, text, _ := strings.Cut(strings.NewReplacer(filled...).Replace(string(manifest)), "\n")
	if err := os.WriteFile(filepath.Join(pluginDir, "krew.yaml"), []byte(text), 0o644); err != nil {
		return fmt.Errorf("failed to write krew's manifest: %w", err)
	}
	return nil
}

// pack returns a reproducible archive of the files.
func pack(files ...string) ([]byte, error) {
	var out bytes.Buffer
	compressor := gzip.NewWriter(&out)
	archive := tar.NewWriter(compressor)
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("failed to read %s: %w", file, err)
		}
		header := &tar.Header{Name: filepath.Base(file), Mode: 0o755, Size: int64(len(raw))}
		if err := archive.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("failed to pack %s: %w", file, err)
		}
		if _, err := archive.Write(raw); err != nil {
			return nil, fmt.Errorf("failed to pack %s: %w", file, err)
		}
	}
	if err := errors.Join(archive.Close(), compressor.Close()); err != nil {
		return nil, fmt.Errorf("failed to pack: %w", err)
	}
	return out.Bytes(), nil
}
