package migrate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
)

const (
	// officialImage starts as root. Its user nginx has the ID officialUser.
	officialImage = "docker.io/library/nginx"
	officialUser  = 101
	// unprivilegedImage is the same with a user other than root.
	unprivilegedImage = "docker.io/nginxinc/nginx-unprivileged"
)

// securityContext converts the security contexts of the Pod and of the nginx container: user and
// group IDs. All other settings are those of Pod Security restricted.
func (r *Result) securityContext(pod, nginx source) {
	var context v1alpha2.PodSecurityContext
	r.podIsNonRoot = pod.fields["runAsNonRoot"] == true
	r.nginxIsNonRoot = r.podIsNonRoot || nginx.fields["runAsNonRoot"] == true
	for _, from := range []source{pod, nginx} {
		from.into(&context.RunAsUser, "runAsUser") // the container's value has precedence
		from.into(&context.RunAsGroup, "runAsGroup")
		from.into(&context.FSGroup, "fsGroup")
		from.into(&context.FSGroupChangePolicy, "fsGroupChangePolicy")
		from.into(&context.SupplementalGroups, "supplementalGroups")
		if ptr.Deref(context.RunAsUser, 1) == 0 {
			from.lose("runAsUser", "nginx must not run as root; set another user in spec.securityContext.runAsUser")
			context.RunAsUser = nil
		}
		takeRestricted(from)
		from.restBecause(restricted)
		clear(from.fields)
	}
	if context.FSGroupChangePolicy == corev1.FSGroupChangeAlways {
		context.FSGroupChangePolicy = ""
	}
	if len(context.SupplementalGroups) == 0 {
		context.SupplementalGroups = nil
	}
	if !equality.Semantic.DeepEqual(context, v1alpha2.PodSecurityContext{}) {
		r.Object.Spec.SecurityContext = &context
	}
}

// takeRestricted removes the settings that the operator's Pods have, too.
func takeRestricted(context source) {
	context.dropDefault(map[string]any{"runAsNonRoot": true, "readOnlyRootFilesystem": true})
	profile := context.in("seccompProfile")
	profile.dropDefault(map[string]any{"type": string(corev1.SeccompProfileTypeRuntimeDefault)})
	capabilities := context.in("capabilities")
	capabilities.drop("drop") // the operator's containers drop all
	// The operator's Pods can listen on all ports.
	if added, _ := capabilities.fields["add"].([]any); len(added) == 1 && added[0] == "NET_BIND_SERVICE" {
		capabilities.drop("add")
	}
}

// sameSecurityContext records the differences of the security context of a container other than
// nginx, which gets the one of nginx.
func (r *Result) sameSecurityContext(container source) {
	context := container.in("securityContext")
	own := ptr.Deref(r.Object.Spec.SecurityContext, v1alpha2.PodSecurityContext{})
	for name, value := range map[string]*int64{"runAsUser": own.RunAsUser, "runAsGroup": own.RunAsGroup} {
		if declared, found := context.fields[name].(int64); found && value != nil && *value == declared {
			context.drop(name)
		}
	}
	takeRestricted(context)
	context.restBecause("all containers have the security context of nginx; see spec.securityContext and spec.patches")
	container.drop("securityContext")
}

// checkUsers warns of images that run as root, or may do so. The kubelet does not start them,
// because the operator's Pods have runAsNonRoot.
func (r *Result) checkUsers() {
	spec := &r.Object.Spec
	if spec.SecurityContext != nil && spec.SecurityContext.RunAsUser != nil {
		return
	}
	name, tag := imageName(spec.Image)
	if name == officialImage {
		r.check("spec.image: %s runs as root, and the operator's Pods do not start with such an image (runAsNonRoot), unless "+
			"the cluster sets a user, as OpenShift does. Set spec.securityContext.runAsUser to %d, the user nginx of the image, "+
			"or use %s%s", spec.Image, officialUser, unprivilegedImage, tag)
	}
	var unknown []string
	add := func(field, image string, isNonRoot bool) {
		if name, _ := imageName(image); image != "" && name != unprivilegedImage && !isNonRoot {
			unknown = append(unknown, fmt.Sprintf("%s (%s)", field, image))
		}
	}
	add("spec.image", spec.Image, r.nginxIsNonRoot || name == officialImage)
	for i := range spec.InitContainers {
		add(fmt.Sprintf("spec.initContainers[%d].image", i), spec.InitContainers[i].Image, r.podIsNonRoot)
	}
	for i := range spec.Sidecars {
		add(fmt.Sprintf("spec.sidecars[%d].image", i), spec.Sidecars[i].Image, r.podIsNonRoot)
	}
	if len(unknown) > 0 {
		r.check("%s: the operator's Pods do not start with an image that runs as root (runAsNonRoot). If the USER of an image is not the "+
			"number of another user, set spec.securityContext.runAsUser", strings.Join(unknown, ", "))
	}
}

// imageName returns the full name of an image, and its tag with the colon, if it has one.
func imageName(image string) (name, tag string) {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return image, ""
	}
	if tagged, ok := named.(reference.Tagged); ok {
		tag = ":" + tagged.Tag()
	}
	return named.Name(), tag
}

// checkBuiltIn warns that the configuration in the image is not used, if no other configuration was
// found.
func (r *Result) checkBuiltIn() {
	spec := &r.Object.Spec
	name, _ := imageName(spec.Image)
	if spec.Config != nil || spec.Image == "" || slices.Contains([]string{officialImage, unprivilegedImage}, name) {
		return // the configuration of these images is nginx's default
	}
	r.check("spec.config: the manifests have no configuration of nginx, and the operator does not use the one in the image (%s). If it is "+
		"not nginx's default, copy the content of its http block to spec.config", spec.Image)
}
