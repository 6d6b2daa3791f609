package check

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// servicePortsAnnotation has the ports of the Service by the names of container ports.
const servicePortsAnnotation = "operator.example.com/service-ports"

// portNames returns a name for each container port of a Deployment that depends only on its number.
// The operator retains the names that Pods have, so they depend on history.
func portNames(d *appsv1.Deployment) map[string]string {
	out := map[string]string{}
	if d == nil {
		return out
	}
	for _, container := range d.Spec.Template.Spec.Containers {
		for _, port := range container.Ports {
			out[port.Name] = fmt.Sprintf("container-port-%d", port.ContainerPort)
		}
	}
	return out
}

// withPortNames returns a copy of a part of a child with replaced names of container ports.
func withPortNames(value any, names map[string]string) any {
	switch value := value.(type) {
	case []any:
		out := make([]any, len(value))
		for i := range value {
			out[i] = withPortNames(value[i], names)
		}
		return out
	case map[string]any:
		out := map[string]any{}
		_, isContainerPort := value["containerPort"]
		for key, element := range value {
			text, isText := element.(string)
			switch {
			case isText && names[text] != "" && (key == "targetPort" || key == "name" && isContainerPort):
				out[key] = names[text]
			case isText && key == servicePortsAnnotation:
				name, number, _ := strings.Cut(text, "=")
				out[key] = names[name] + "=" + number
			default:
				out[key] = withPortNames(element, names)
			}
		}
		return out
	}
	return value
}

// Serves reports whether a Pod serves a number of the Service.
func Serves(pod *corev1.Pod, number int32) bool {
	mapped := pod.Annotations[servicePortsAnnotation]
	for _, port := range pod.Spec.Containers[0].Ports {
		isMapped := slices.ContainsFunc(strings.Split(mapped, ","), func(pair string) bool { return strings.HasPrefix(pair, port.Name+"=") })
		if slices.Contains(strings.Split(mapped, ","), fmt.Sprintf("%s=%d", port.Name, number)) || !isMapped && port.ContainerPort == number {
			return true
		}
	}
	return false
}
