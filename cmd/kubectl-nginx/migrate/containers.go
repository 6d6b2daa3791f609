package migrate

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// nginxContainer converts the nginx container, except for its ports and mounts.
func (r *Result) nginxContainer(nginx source) {
	dropEnvDefaults(nginx)
	nginx.into(&r.Object.Spec.Image, "image")
	nginx.into(&r.Object.Spec.Resources, "resources")
	nginx.into(&r.Object.Spec.Env, "env")
	dropDefaults(nginx)
	nginx.drop("name")
	r.probes(nginx)
}

// probes records the probes of the nginx container. The operator's probes ask a server of its own.
func (r *Result) probes(nginx source) {
	var found []string
	for _, name := range []string{"livenessProbe", "readinessProbe", "startupProbe"} {
		if !isNothing(nginx.take(name)) {
			found = append(found, name)
		}
	}
	if len(found) > 0 {
		r.check("%s: the operator's probes replace %s. They ask a server of the operator, so a Pod is ready as soon as nginx runs",
			nginx.path, strings.Join(found, " and "))
	}
}

// otherContainers converts the containers other than nginx. The operator's init containers with
// restartPolicy Always are sidecars.
func (r *Result) otherContainers(initContainers, containers []source) {
	spec := &r.Object.Spec
	for _, one := range initContainers {
		if one.fields["restartPolicy"] == string(corev1.ContainerRestartPolicyAlways) {
			one.drop("restartPolicy")
			spec.Sidecars = append(spec.Sidecars, r.container(one))
			continue
		}
		spec.InitContainers = append(spec.InitContainers, r.container(one))
	}
	for _, one := range containers {
		spec.Sidecars = append(spec.Sidecars, r.container(one))
	}
}

// container converts a container other than nginx.
func (r *Result) container(from source) (out v1alpha2.Container) {
	dropEnvDefaults(from)
	dropDefaults(from)
	r.sameSecurityContext(from)
	from.all(&out)
	return out
}

// dropDefaults removes the defaults of the API server, and the values that the operator sets, too.
func dropDefaults(container source) {
	container.dropDefault(map[string]any{
		"imagePullPolicy": string(corev1.PullIfNotPresent), "terminationMessagePath": corev1.TerminationMessagePathDefault,
	})
	container.drop("terminationMessagePolicy") // the operator's value shows more
}

// dropEnvDefaults removes the defaults of the API server from the sources of variables.
func dropEnvDefaults(container source) {
	variables, _ := container.fields["env"].([]any)
	for _, variable := range variables {
		if fields, isMap := variable.(map[string]any); isMap {
			from := source{fields: fields}.in("valueFrom")
			from.in("fieldRef").dropDefault(map[string]any{"apiVersion": "v1"})
			from.in("resourceFieldRef").dropDefault(map[string]any{"divisor": "0"})
		}
	}
}

// mounts reports whether a container other than nginx mounts a volume.
func (r *Result) mounts(volume string) bool {
	return slices.ContainsFunc(slices.Concat(r.Object.Spec.InitContainers, r.Object.Spec.Sidecars), func(one v1alpha2.Container) bool {
		return slices.ContainsFunc(one.VolumeMounts, func(mount v1alpha2.VolumeMount) bool { return mount.Name == volume })
	})
}
