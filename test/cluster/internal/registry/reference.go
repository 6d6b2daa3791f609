// Package registry maps image names to the cluster's own registry, and has the gateway that
// replaces the public registries.
package registry

import (
	"fmt"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/example/nginx-operator/test/cluster/internal/layout"
)

// Mirrored are the public registries whose images the node pulls from the cluster's own registry.
// Manifests with public image names therefore work unchanged.
var Mirrored = []string{"docker.io", "gcr.io", "ghcr.io", "quay.io", "registry.access.redhat.com", "registry.k8s.io"}

// Reference is a full image name.
type Reference struct {
	// repository starts with the registry, for example docker.io/library/busybox.
	repository, tag string
}

func (r Reference) String() string { return r.repository + ":" + r.tag }

// InCluster returns the name of the image in the cluster's registry. A name that already starts
// with that registry is unchanged.
func (r Reference) InCluster() string {
	if strings.HasPrefix(r.repository, layout.RegistryAddress+"/") {
		return r.String()
	}
	return layout.RegistryAddress + "/" + r.String()
}

// Parse parses a name like container tools do: busybox is docker.io/library/busybox:latest.
func Parse(image string) (Reference, error) {
	tag, err := name.NewTag(image)
	if err != nil {
		return Reference{}, fmt.Errorf("the image name %q is not valid: %w", image, err)
	}
	return Reference{strings.Replace(tag.Repository.Name(), name.DefaultRegistry, "docker.io", 1), tag.TagStr()}, nil
}
