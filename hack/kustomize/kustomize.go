// Package kustomize renders kustomizations of the directory config, as users write them.
package kustomize

import (
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// Render returns the objects of a kustomization. Its resources and components are directories of
// config, which is the path of a directory.
func Render(config string, kustomization types.Kustomization) (resmap.ResMap, error) {
	dir, err := os.MkdirTemp("", "kustomization-")
	if err != nil {
		return nil, fmt.Errorf("failed to make a directory: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()

	// Kustomize accepts only relative paths.
	config, err = relative(dir, config)
	if err != nil {
		return nil, fmt.Errorf("failed to find config: %w", err)
	}
	kustomization.Resources = within(config, kustomization.Resources)
	kustomization.Components = within(config, kustomization.Components)
	text, err := yaml.Marshal(kustomization)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "kustomization.yaml"), text, 0o600)
	}
	if err != nil {
		return nil, fmt.Errorf("failed to write the kustomization: %w", err)
	}
	rendered, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		return nil, fmt.Errorf("failed to render config: %w", err)
	}
	return rendered, nil
}

func within(dir string, names []string) []string {
	var out []string
	for _, name := range names {
		out = append(out, filepath.Join(dir, name))
	}
	return out
}

// relative returns the relative path between two directories after resolving symbolic links.
func relative(from, to string) (string, error) {
	var err error
	for _, path := range []*string{&from, &to} {
		if *path, err = filepath.Abs(*path); err == nil {
			*path, err = filepath.EvalSymlinks(*path)
		}
		if err != nil {
			return "", err
		}
	}
	return filepath.Rel(from, to)
}
