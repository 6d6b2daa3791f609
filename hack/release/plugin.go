package main

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	pluginName   = "kubectl-nginx"
	pluginDir    = "dist/" + pluginName
	krewManifest = "cmd/" + pluginName + "/krew.yaml"
	windows      = "windows"
)

// pluginPlatforms are the platforms of workstations. They do not depend on the platforms of the
// images.
var pluginPlatforms = []string{"linux_amd64", "linux_arm64", "darwin_amd64", "darwin_arm64", "windows_amd64", "windows_arm64"}

// pluginProgram returns the file name of the program for a platform.
func pluginProgram(platform string) string {
	if strings.HasPrefix(platform, windows) {
		return pluginName + ".exe"
	}
	return pluginName
}

// packPlugin writes the archives of the plugin, and its krew manifest, to dist/kubectl-nginx.
func (p *project) packPlugin() error {
	files, err := p.pluginFiles()
	if err != nil {
		return err
	}
	return writeFiles(pluginDir, files)
}

// pluginFiles builds the kubectl plugin for its platforms. It returns an archive for each of them.
// If these are all platforms, it also returns the krew manifest with the checksums of the archives.
func (p *project) pluginFiles() (map[string][]byte, error) {
	manifest, err := os.ReadFile(krewManifest)
	license, licenseErr := readPacked("LICENSE", "LICENSE", 0o644)
	if err := errors.Join(err, licenseErr); err != nil {
		return nil, fmt.Errorf("failed to read krew's manifest and the license: %w", err)
	}
	files, filled := map[string][]byte{}, []string{"@VERSION@", p.version}
	for _, platform := range p.pluginPlatforms {
		name := pluginProgram(platform)
		built := filepath.Join(pluginDir, platform, name)
		system, arch, _ := strings.Cut(platform, "_")
		err := execute(append(goBuild(system, arch), "-ldflags=-s -w -X main.version="+p.version, "-o", built, "./cmd/"+pluginName))
		if err != nil {
			return nil, err
		}
		program, err := readPacked(built, name, 0o755)
		if err != nil {
			return nil, err
		}
		suffix, pack := ".tar.gz", tarball
		if system == windows {
			suffix, pack = ".zip", zipped
		}
		archive, err := pack([]packed{program, license})
		if err != nil {
			return nil, err
		}
		files[pluginName+"_"+platform+suffix] = archive
		filled = append(filled, "@"+platform+"@", fmt.Sprintf("%x", sha256.Sum256(archive)))
	}
	if len(p.pluginPlatforms) < len(pluginPlatforms) {
		return files, nil
	}
	// Drop the first line, which describes the template.
	_, text, _ := strings.Cut(strings.NewReplacer(filled...).Replace(string(manifest)), "\n")
	files["krew.yaml"] = []byte(text)
	return files, nil
}

// pluginSBOM returns the SBOM of the programs that pluginFiles built.
func (p *project) pluginSBOM() ([]byte, error) {
	head, err := readCheckout("operator")
	if err != nil {
		return nil, err
	}
	file := filepath.Join(pluginDir, pluginName+".spdx.json")
	command := []string{
		"bin/oci", "programs", "-commit=" + head.commit, "-time=" + head.time.UTC().Format(time.RFC3339), "-release=" + p.version, "-out=" + file,
	}
	for _, platform := range p.pluginPlatforms {
		command = append(command, filepath.Join(pluginDir, platform, pluginProgram(platform)))
	}
	if err := execute(command); err != nil {
		return nil, err
	}
	return os.ReadFile(file)
}

// writeFiles writes files to a directory, which it creates.
func writeFiles(dir string, files map[string][]byte) error {
	err := os.MkdirAll(dir, 0o755)
	for name, content := range files {
		err = cmp.Or(err, os.WriteFile(filepath.Join(dir, name), content, 0o644))
	}
	if err != nil {
		return fmt.Errorf("failed to write the files of %s: %w", dir, err)
	}
	return nil
}
