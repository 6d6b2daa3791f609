package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/types"

	"github.com/example/nginx-operator/hack/kustomize"
)

const (
	releaseDir = "dist/release"
	sourceURL  = "https://github.com/example/nginx-operator"
	sumsFile   = "SHA256SUMS"
)

// documented are the kinds of images whose SBOM and provenance a release publishes.
var documented = []string{"operator", "bundle", "catalog", "scorecard", receiver}

// packRelease writes the files of the release's page to a new directory. They reference the image
// of the operator by the digest that it has in the registry of the cluster. The same commit and the
// same images give the same files.
func (p *project) packRelease(dir string) error {
	operator, err := p.byDigest(p.image("operator", p.version))
	if err != nil {
		return err
	}
	files := map[string][]byte{}
	for _, part := range []func(operator string) (map[string][]byte, error){
		p.manifestFiles, p.documentFiles, p.noteFiles, p.submissionFiles, p.chartFiles, p.workstationFiles,
	} {
		made, err := part(operator)
		if err != nil {
			return err
		}
		maps.Copy(files, made)
	}
	files[sumsFile] = checksums(files)
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("failed to remove the files of an earlier release: %w", err)
	}
	return writeFiles(dir, files)
}

// workstationFiles returns the files of the plugin, and its SBOM.
func (p *project) workstationFiles(string) (map[string][]byte, error) {
	files, err := p.pluginFiles()
	if err != nil {
		return nil, err
	}
	files[pluginName+".spdx.json"], err = p.pluginSBOM()
	return files, err
}

// checksums returns the SHA-256 sums of the files, as sha256sum prints them.
func checksums(files map[string][]byte) []byte {
	var out []byte
	for _, name := range slices.Sorted(maps.Keys(files)) {
		out = fmt.Appendf(out, "%x  %s\n", sha256.Sum256(files[name]), name)
	}
	return out
}

// manifestFiles renders the manifests for kubectl, without and with cert-manager.
func (p *project) manifestFiles(operator string) (map[string][]byte, error) {
	files := map[string][]byte{}
	for name, components := range map[string][]string{
		"install.yaml":              nil,
		"install-cert-manager.yaml": {"certmanager"},
	} {
		rendered, err := p.renderInstall(operator, components)
		if err != nil {
			return nil, fmt.Errorf("failed to render %s: %w", name, err)
		}
		files[name] = append(fmt.Appendf(nil, "# nginx-operator %s: kubectl apply --server-side -f %s/releases/download/v%s/%s\n",
			p.version, sourceURL, p.version, name), rendered...)
	}
	return files, nil
}

// renderInstall renders config/default with components of config and the image of the operator.
// Namespaces and CRDs come before the objects that need them.
func (p *project) renderInstall(operator string, components []string) ([]byte, error) {
	repository, digest, _ := strings.Cut(operator, "@")
	objects, err := kustomize.Render(filepath.Join(p.delivery, "config"), types.Kustomization{
		Resources: []string{"default"}, Components: components,
		Images:      []types.Image{{Name: repository, Digest: digest}},
		SortOptions: &types.SortOptions{Order: types.LegacySortOrder},
	})
	if err != nil {
		return nil, err
	}
	return objects.AsYaml()
}

// documentFiles returns the SBOM and the provenance of each published image.
func (p *project) documentFiles(string) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, kind := range documented {
		repository, err := untagged(p.image(kind, p.version))
		if err != nil {
			return nil, err
		}
		for dir, suffix := range map[string]string{"sbom": ".spdx.json", "provenance": ".intoto.json"} {
			name := filepath.Base(repository) + suffix
			files[name], err = os.ReadFile(filepath.Join("dist", dir, name))
			if errors.Is(err, fs.ErrNotExist) {
				return nil, fmt.Errorf("the image of the %s has no %s: run `make images` first: %w", kind, dir, err)
			}
			if err != nil {
				return nil, fmt.Errorf("failed to read the %s of the %s: %w", dir, kind, err)
			}
		}
	}
	return files, nil
}
