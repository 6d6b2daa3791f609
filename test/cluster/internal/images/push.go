package images

import (
	"fmt"
	"runtime"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/example/nginx-operator/test/cluster/internal/registry"
)

// push creates an image and pushes it under all of its names. The same files result in the same
// image, because it has no times.
func (r recipe) push(options ...remote.Option) error {
	layer, err := newLayer(r.write)
	if err != nil {
		return err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	if r.base != "" {
		if image, err = pull(r.base, options...); err != nil {
			return err
		}
	}
	if image, err = withLayer(image, layer, r.config); err != nil {
		return err
	}
	for _, name := range r.names {
		tag, err := inCluster(name)
		if err != nil {
			return err
		}
		if err := remote.Write(tag, image, options...); err != nil {
			return fmt.Errorf("failed to push: %w", err)
		}
		// The registry copies the layers of an image that it has to the repositories of other
		// names.
		if image, err = pull(name, options...); err != nil {
			return err
		}
	}
	return nil
}

// withLayer adds a layer to an image and replaces its configuration.
func withLayer(image v1.Image, layer v1.Layer, config v1.Config) (v1.Image, error) {
	file, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("failed to read the configuration of an image: %w", err)
	}
	file = file.DeepCopy()
	file.Created, file.OS, file.Architecture, file.Config = v1.Time{Time: time.Unix(0, 0).UTC()}, "linux", runtime.GOARCH, config
	if image, err = mutate.ConfigFile(image, file); err != nil {
		return nil, fmt.Errorf("failed to configure an image: %w", err)
	}
	if image, err = mutate.AppendLayers(image, layer); err != nil {
		return nil, fmt.Errorf("failed to add a layer: %w", err)
	}
	return image, nil
}

// pull returns an image of the registry.
func pull(image string, options ...remote.Option) (v1.Image, error) {
	tag, err := inCluster(image)
	if err != nil {
		return nil, err
	}
	found, err := remote.Image(tag, options...)
	if err != nil {
		return nil, fmt.Errorf("failed to read %s: %w", image, err)
	}
	return found, nil
}

// inCluster returns the name of an image in the cluster's registry.
func inCluster(image string) (name.Tag, error) {
	ref, err := registry.Parse(image)
	if err != nil {
		return name.Tag{}, err
	}
	tag, err := name.NewTag(ref.InCluster())
	if err != nil {
		return name.Tag{}, fmt.Errorf("failed to parse %s: %w", ref, err)
	}
	return tag, nil
}
