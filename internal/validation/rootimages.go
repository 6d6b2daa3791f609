package validation

import (
	"fmt"
	"slices"
	"strings"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/images"
)

// rootImages returns warnings about images that are known to run as root if the spec sets no user.
// The kubelet does not start such a container, because the Pods have runAsNonRoot.
func rootImages(spec *v1alpha2.NginxOperatorSpec) []string {
	if spec.SecurityContext != nil && spec.SecurityContext.RunAsUser != nil || slices.ContainsFunc(spec.Patches, setsUser) {
		return nil
	}

	var out []string
	add := func(field, image string) {
		if images.RunsAsRoot(image) {
			repository, _ := images.Parse(image)
			out = append(out, fmt.Sprintf("%s: %s runs as root, and the kubelet does not start such a container (runAsNonRoot); set "+
				"spec.securityContext.runAsUser, for example %d, unless the cluster sets a user, as OpenShift does",
				field, repository, images.NginxUser))
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
