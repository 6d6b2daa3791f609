// Package olmv1 installs OLM v1 (catalogd and operator-controller) and cert-manager, which OLM v1
// requires.
package olmv1

import (
	"bytes"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/example/nginx-operator/test/cluster/internal/host"
	"github.com/example/nginx-operator/test/cluster/internal/images"
)

// certManagerName is the name of the release and of the namespace of cert-manager.
const certManagerName = "cert-manager"

// certManagerObjects are the objects of cert-manager's chart except its CRDs, as a test renders
// them.
//
//go:embed cert-manager.yaml
var certManagerObjects []byte

// cainjectorRole has the permissions of the cainjector in hack/tools/cainjector that the chart does
// not grant, because it is of an earlier release.
//
//go:embed cainjector.yaml
var cainjectorRole []byte

// chartAction is an action of a template. The CRDs of cert-manager have them only in labels, whose
// value is the name of the chart and of its release.
var chartAction = regexp.MustCompile(`'?\{\{.*\}\}'?`)

// withCRDs returns the objects of cert-manager. source is the directory of its module.
func withCRDs(source string) ([]byte, error) {
	crds, err := filepath.Glob(filepath.Join(source, "deploy", "crds", "*.yaml"))
	if err != nil || len(crds) == 0 {
		return nil, fmt.Errorf("failed to find the CRDs of cert-manager in %s: %w", source, err)
	}
	var out []byte
	for _, file := range append([]string{filepath.Join(source, "deploy", "manifests", "namespace.yaml")}, crds...) {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("failed to read the objects of cert-manager: %w", err)
		}
		out = append(append(out, chartAction.ReplaceAll(data, []byte(certManagerName))...), "\n---\n"...)
	}
	return slices.Concat(out, certManagerObjects, []byte("\n---\n"), cainjectorRole), nil
}

//go:embed kustomization.yaml
var kustomization []byte

// patched adapts the manifests in the module of OLM v1 to the local cluster. It also replaces the
// tags of the images, because the manifests reference development images.
func patched(kubectl, source, version string) ([]byte, error) {
	manifests, err := os.ReadFile(filepath.Join(source, "manifests", "standard.yaml"))
	if err != nil {
		return nil, fmt.Errorf("failed to read the manifests of OLM v1: %w", err)
	}
	dir, err := os.MkdirTemp("", "olm-v1-")
	if err != nil {
		return nil, fmt.Errorf("failed to make a temporary directory: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	tags := "images:\n"
	for _, repository := range []string{images.Catalogd, images.OperatorController} {
		tags += fmt.Sprintf("- name: %s\n  newTag: %s\n", repository, version)
	}
	for name, data := range map[string][]byte{"kustomization.yaml": append(bytes.Clone(kustomization), tags...), "standard.yaml": manifests} {
		if err := host.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			return nil, err
		}
	}
	rendered, err := exec.Command(kubectl, "kustomize", dir).Output()
	if err != nil {
		return nil, fmt.Errorf("failed to patch the manifests of OLM v1: %w", host.CommandError(err))
	}
	return rendered, nil
}
