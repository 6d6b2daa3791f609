package migrate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/codec"
	"github.com/example/nginx-operator/internal/images"
	"github.com/example/nginx-operator/internal/nginxconf"
)

// bitnamiImages have their files in other directories than the official image.
var bitnamiImages = []string{"docker.io/bitnami/nginx", "docker.io/bitnamilegacy/nginx"}

// securityContext converts the security contexts of the Pod and of the nginx container: user and
// group IDs. All other settings are those of Pod Security restricted.
func (r *Result) securityContext(pod, nginx source) {
	var context v1alpha2.PodSecurityContext
	r.ofPod = maps.Clone(pod.fields)
	r.isNonRoot = map[string]bool{mainContainer: r.provesNonRoot(nginx)}
	pod.dropDefault(map[string]any{"fsGroupChangePolicy": string(corev1.FSGroupChangeAlways)})
	for _, from := range []source{pod, nginx} { // the container's value has precedence
		from.pick(&context, "runAsUser", "runAsGroup", "fsGroup", "fsGroupChangePolicy", "supplementalGroups")
		if ptr.Deref(context.RunAsUser, 1) == 0 {
			from.lose("runAsUser", "nginx must not run as root; set another user in spec.securityContext.runAsUser")
			context.RunAsUser = nil
		}

		takeRestricted(from)
		from.restBecause(restricted)
		clear(from.fields)
	}

	r.Object.Spec.SecurityContext = unlessEmpty(context)
}

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

// provesNonRoot reports whether a container can only run if its image has a user other than root: it
// has runAsNonRoot, and no user that the operator replaces.
func (r *Result) provesNonRoot(context source) bool {
	isNonRoot, isSet := context.fields["runAsNonRoot"].(bool)
	if !isSet {
		isNonRoot = r.ofPod["runAsNonRoot"] == true
	}
	return isNonRoot && context.fields["runAsUser"] == nil
}

// sameSecurityContext records what changes for a container that gets the security context of nginx.
func (r *Result) sameSecurityContext(container source) {
	context := container.in("securityContext")
	name, _ := container.fields["name"].(string)
	r.isNonRoot[name] = r.provesNonRoot(context)
	ofNginx := ptr.Deref(r.Object.Spec.SecurityContext, v1alpha2.PodSecurityContext{})
	var changed []string
	for _, id := range []struct {
		name  string
		value *int64
	}{{"runAsUser", ofNginx.RunAsUser}, {"runAsGroup", ofNginx.RunAsGroup}} {
		switch declared := context.fields[id.name]; {
		case id.value == nil:
		case declared == *id.value:
			context.drop(id.name)
		case declared == nil && r.ofPod[id.name] != *id.value:
			changed = append(changed, fmt.Sprintf("%s %d", id.name, *id.value))
		}
	}

	if len(changed) > 0 {
		r.check("%s: it gets %s of the nginx container, because spec.securityContext applies to all containers; check that it works with it",
			container.path, strings.Join(changed, " and "))
	}

	takeRestricted(context)
	context.restBecause("all containers have the security context of nginx; see spec.securityContext and spec.patches")
	container.drop("securityContext")
}

func (r *Result) checkImages() notes {
	spec, warnings := &r.Object.Spec, notes{}
	if repository, _ := images.Parse(spec.Image); slices.Contains(bitnamiImages, repository) {
		warnings.check("spec.image: nginx does not start with %s, because the operator's nginx.conf includes %s, which the "+
			"image does not have; use %s", spec.Image, nginxconf.MimeTypes, images.Unprivileged)
	}
	if spec.SecurityContext != nil && spec.SecurityContext.RunAsUser != nil {
		return warnings
	}

	var unknown []string
	check := func(field string, container v1alpha2.Container) {
		switch repository, tag := images.Parse(container.Image); {
		case container.Image == "", repository == images.Unprivileged, r.isNonRoot[container.Name]:
		case !images.RunsAsRoot(container.Image):
			unknown = append(unknown, fmt.Sprintf("%s.image (%s)", field, container.Image))
		default:
			remedy := fmt.Sprintf("set spec.securityContext.runAsUser, for example to %d", images.NginxUser)
			if repository == images.Nginx {
				remedy = fmt.Sprintf("set spec.securityContext.runAsUser to %d, the user nginx of the image, or use %s",
					images.NginxUser, strings.TrimSuffix(images.Unprivileged+":"+tag, ":"))
			}
			warnings.check("%s.image: %s runs as root, and the operator's Pods do not start with such an image "+
				"(runAsNonRoot), unless the cluster sets a user, as OpenShift does; %s", field, container.Image, remedy)
		}
	}

	check("spec", v1alpha2.Container{Name: mainContainer, Image: spec.Image})
	for i, container := range spec.InitContainers {
		check(fmt.Sprintf("spec.initContainers[%d]", i), container)
	}
	for i, container := range spec.Sidecars {
		check(fmt.Sprintf("spec.sidecars[%d]", i), container)
	}
	if len(unknown) > 0 {
		warnings.check("%s: the operator's Pods do not start with an image that runs as root (runAsNonRoot). If the USER of "+
			"an image is not the number of another user, set spec.securityContext.runAsUser", strings.Join(unknown, ", "))
	}

	return warnings
}

func (r *Result) checkBuiltIn() {
	spec := &r.Object.Spec
	repository, _ := images.Parse(spec.Image)
	if spec.Config != nil || spec.Image == "" || slices.Contains([]string{images.Nginx, images.Unprivileged}, repository) {
		return // the configuration of these images is nginx's default
	}

	r.check("spec.config: the manifests have no configuration of nginx, and the operator does not use the one in the image (%s). If it is "+
		"not nginx's default, copy the content of its http block to spec.config", spec.Image)
}

func (r *Result) nginxContainer(nginx source) {
	dropEnvDefaults(nginx)
	nginx.pick(&r.Object.Spec, "image", "resources", "env")
	dropDefaults(nginx)
	nginx.drop("name")
	r.probes(nginx)
}

// probes records the probes of the nginx container. The operator's probes ask a server of its own.
func (r *Result) probes(nginx source) {
	var replaced []string
	for _, name := range []string{"livenessProbe", "readinessProbe", "startupProbe"} {
		if !isNothing(nginx.take(name)) {
			replaced = append(replaced, name)
		}
	}
	if len(replaced) > 0 {
		r.check("%s: the operator's probes replace %s. They ask a server of the operator, so a Pod is ready as soon as nginx runs",
			nginx.path, strings.Join(replaced, " and "))
	}
}

// otherContainers turns init containers with restartPolicy Always into sidecars.
func (r *Result) otherContainers(initContainers, containers []source) {
	spec := &r.Object.Spec
	for _, container := range initContainers {
		if container.fields["restartPolicy"] == string(corev1.ContainerRestartPolicyAlways) {
			container.drop("restartPolicy")
			spec.Sidecars = append(spec.Sidecars, r.container(container))
			continue
		}
		spec.InitContainers = append(spec.InitContainers, r.container(container))
	}
	for _, container := range containers {
		spec.Sidecars = append(spec.Sidecars, r.container(container))
	}
}

func (r *Result) container(from source) (container v1alpha2.Container) {
	dropEnvDefaults(from)
	dropDefaults(from)
	r.sameSecurityContext(from)
	from.all(&container)
	return container
}

func dropDefaults(container source) {
	container.dropDefault(map[string]any{
		"imagePullPolicy": string(corev1.PullIfNotPresent), "terminationMessagePath": corev1.TerminationMessagePathDefault,
	})
	container.drop("terminationMessagePolicy") // the operator's value shows more
}

func dropEnvDefaults(container source) {
	for _, variable := range codec.Objects(container.fields["env"]) {
		from := source{fields: variable}.in("valueFrom")
		from.in("fieldRef").dropDefault(map[string]any{"apiVersion": "v1"})
		from.in("resourceFieldRef").dropDefault(map[string]any{"divisor": "0"})
	}
}

func (r *Result) mounts(volume string) bool {
	isOf := func(mount v1alpha2.VolumeMount) bool { return mount.Name == volume }
	others := slices.Concat(r.Object.Spec.InitContainers, r.Object.Spec.Sidecars)
	return slices.ContainsFunc(others, func(container v1alpha2.Container) bool {
		return slices.ContainsFunc(container.VolumeMounts, isOf)
	})
}
