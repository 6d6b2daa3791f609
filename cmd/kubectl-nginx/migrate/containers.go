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

func (r *Result) mounts(volume string) bool {
	isOf := func(mount v1alpha2.VolumeMount) bool { return mount.Name == volume }
	others := slices.Concat(r.Object.Spec.InitContainers, r.Object.Spec.Sidecars)
	return slices.ContainsFunc(others, func(container v1alpha2.Container) bool {
		return slices.ContainsFunc(container.VolumeMounts, isOf)
	})
}
