// Package olmv1 installs OLM v1 (catalogd and operator-controller) and cert-manager, which OLM v1
// requires.
package olmv1

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/test/cluster/internal/host"
	"github.com/example/nginx-operator/test/cluster/internal/images"
)

//go:embed kustomization.yaml
var kustomization []byte

// patch adapts the manifests of an OLM v1 release to the local cluster. It also replaces the tags
// of the images, because the manifests reference development images.
func patch(manifests []byte, version string) ([]byte, error) {
	var k types.Kustomization
	if err := yaml.UnmarshalStrict(kustomization, &k); err != nil {
		return nil, fmt.Errorf("failed to decode the kustomization of OLM v1: %w", err)
	}
	for _, repository := range []string{images.Catalogd, images.OperatorController} {
		k.Images = append(k.Images, types.Image{Name: repository, NewTag: version})
	}
	text, err := yaml.Marshal(k)
	if err != nil {
		return nil, fmt.Errorf("failed to encode the kustomization of OLM v1: %w", err)
	}
	files := filesys.MakeFsInMemory()
	for name, data := range map[string][]byte{"kustomization.yaml": text, k.Resources[0]: manifests} {
		if err := files.WriteFile(name, data); err != nil {
			return nil, fmt.Errorf("failed to write %s: %w", name, err)
		}
	}
	rendered, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, ".")
	if err != nil {
		return nil, fmt.Errorf("failed to patch the manifests of OLM v1: %w", err)
	}
	return rendered.AsYaml()
}

// writeChart assembles the chart of cert-manager in an empty directory, like cert-manager's
// Makefile. The chart in the source has no version, and its CRDs, which are also templates, are in
// another directory.
func writeChart(dir, source, version string) error {
	crds := filepath.Join(dir, "templates", "crds")
	for from, to := range map[string]string{filepath.Join("charts", "cert-manager"): dir, "crds": crds} {
		if err := os.CopyFS(to, os.DirFS(filepath.Join(source, "deploy", from))); err != nil {
			return fmt.Errorf("failed to copy the chart of cert-manager: %w", err)
		}
	}
	// Helm would render it as a template.
	if err := os.Remove(filepath.Join(crds, "README.md")); err != nil {
		return fmt.Errorf("failed to copy the chart of cert-manager: %w", err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "Chart.template.yaml"))
	if err != nil {
		return fmt.Errorf("failed to read the chart of cert-manager: %w", err)
	}
	var chart map[string]any
	if err := yaml.Unmarshal(text, &chart); err != nil {
		return fmt.Errorf("failed to decode the chart of cert-manager: %w", err)
	}
	chart["version"], chart["appVersion"] = version, version
	if text, err = yaml.Marshal(chart); err != nil {
		return fmt.Errorf("failed to encode the chart of cert-manager: %w", err)
	}
	return host.WriteFile(filepath.Join(dir, "Chart.yaml"), text, 0o600)
}
