// Package registry maps image names to the cluster's own registry, and has the gateway that
// replaces the public registries.
package registry

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/example/nginx-operator/test/cluster/internal/layout"
)

// Mirrored are the public registries whose images the node pulls from the cluster's own registry.
// Manifests with public image names therefore work unchanged.
var Mirrored = []string{"docker.io", "gcr.io", "ghcr.io", "quay.io", "registry.access.redhat.com", "registry.k8s.io"}

// Reference is a full image name.
type Reference struct {
	// repository starts with the registry, for example docker.io/library/busybox.
	repository string
	Tag        string
}

func (r Reference) String() string { return r.repository + ":" + r.Tag }

// InCluster returns the name of the image in the cluster's registry. A name that already starts
// with that registry is unchanged.
func (r Reference) InCluster() string {
	if strings.HasPrefix(r.repository, layout.RegistryAddress+"/") {
		return r.String()
	}
	return layout.RegistryAddress + "/" + r.String()
}

// Path returns the repository in the cluster's registry.
func (r Reference) Path() string { return strings.TrimPrefix(r.repository, layout.RegistryAddress+"/") }

var (
	repositoryPattern = regexp.MustCompile(`^[a-z0-9]+(?:[._-]+[a-z0-9]+)*(?::[0-9]+)?(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)+$`)
	tagPattern        = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)
)

// Parse parses a name like container tools do: busybox is docker.io/library/busybox:latest.
func Parse(name string) (Reference, error) {
	if strings.Contains(name, "@") {
		return Reference{}, fmt.Errorf("the image %q has a digest: name a tag", name)
	}
	ref := Reference{repository: name, Tag: "latest"}
	if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
		ref.repository, ref.Tag = name[:i], name[i+1:]
	}
	first, _, nested := strings.Cut(ref.repository, "/")
	switch {
	case !nested:
		ref.repository = "docker.io/library/" + ref.repository
	case !strings.ContainsAny(first, ".:") && first != "localhost":
		ref.repository = "docker.io/" + ref.repository
	}
	if !repositoryPattern.MatchString(ref.repository) || !tagPattern.MatchString(ref.Tag) {
		return Reference{}, fmt.Errorf("the image name %q is not valid", name)
	}
	return ref, nil
}
