package validation

import (
	"fmt"
	"slices"
	"strings"

	"github.com/distribution/reference"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// rootRepositories are widely used images without a USER, which run as root. Admission knows no
// image, and copies in other registries may differ.
var rootRepositories = []string{
	"docker.io/library/nginx", "docker.io/library/busybox", "docker.io/library/alpine", "docker.io/library/debian", "docker.io/library/ubuntu",
	"docker.io/alpine/git",
}

// rootImages returns warnings about images that run as root if the spec sets no user. The kubelet
// does not start such a container, because the Pods have runAsNonRoot.
func rootImages(spec *v1alpha2.NginxOperatorSpec) []string {
	if spec.SecurityContext != nil && spec.SecurityContext.RunAsUser != nil || slices.ContainsFunc(spec.Patches, setsUser) {
		return nil
	}

	var out []string
	add := func(field, image string) {
		if name, isRoot := rootRepository(image); isRoot {
			out = append(out, fmt.Sprintf("%s: %s runs as root, and the kubelet does not start such a container (runAsNonRoot); "+
				"set spec.securityContext.runAsUser, for example 101, unless the cluster sets a user, as OpenShift does", field, name))
		}
	}
	add("spec.image", spec.Image)
	for i := range spec.InitContainers {
		add(fmt.Sprintf("spec.initContainers[%d].image", i), spec.InitContainers[i].Image)
	}
	for i := range spec.Sidecars {
		add(fmt.Sprintf("spec.sidecars[%d].image", i), spec.Sidecars[i].Image)
	}
	return out
}

// setsUser reports whether a patch may set the user of a container.
func setsUser(patch v1alpha2.Patch) bool {
	return patch.Target.Kind == "Deployment" && strings.Contains(patch.Patch, "runAsUser")
}

// rootRepository returns the repository of an image, and whether it is one of rootRepositories.
func rootRepository(image string) (string, bool) {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return "", false
	}
	return named.Name(), slices.Contains(rootRepositories, named.Name())
}
