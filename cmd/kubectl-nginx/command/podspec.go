package command

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// podSpec is the part of a spec that reaches the Pods.
type podSpec struct {
	fields map[string]any
	typed  v1alpha2.NginxOperatorSpec
	// service has the ports of the Service of these Pods, which have the names.
	service []corev1.ServicePort
}

// retained are the fields of a spec that do not reach the Pods.
var retained = []string{"replicas", "autoscaling", "paused", "rollout", "service", "networkPolicy", "expose"}

// spec returns the spec of a live object with the part that reaches the Pods.
func (p podSpec) spec(live *unstructured.Unstructured) map[string]any {
	now, _, _ := unstructured.NestedMap(live.Object, "spec")
	out := (&unstructured.Unstructured{Object: p.fields}).DeepCopy().Object
	for _, field := range retained {
		if value, found := now[field]; found {
			out[field] = value
		}
	}
	if ports, found := out["ports"].([]any); found {
		out["ports"] = p.named(ports)
	}
	restoreNodePorts(out["tls"], now["tls"])
	if monitoring, found := out["monitoring"].(map[string]any); found {
		before, _ := now["monitoring"].(map[string]any)
		for _, field := range []string{"podMonitor", "alerts"} {
			if value, found := before[field]; found {
				monitoring[field] = value
			}
		}
	}
	others := slices.DeleteFunc(listOf(now["patches"]), func(patch any) bool {
		kind, _, _ := unstructured.NestedString(patch.(map[string]any), "target", "kind")
		return kind == "Deployment"
	})
	if patches := append(listOf(out["patches"]), others...); len(patches) > 0 {
		out["patches"] = patches
	}
	return out
}

// named returns ports with the names, protocols, and node ports of the Service.
func (p podSpec) named(ports []any) []any {
	for i, port := range ports {
		fields := port.(map[string]any)
		number := p.typed.Ports[i].Port
		at := slices.IndexFunc(p.service, func(one corev1.ServicePort) bool { return one.Port == number })
		if at < 0 {
			fields["name"] = fmt.Sprintf("p-%d", number)
			continue
		}
		declared := p.service[at]
		fields["name"] = declared.Name
		if protocol := ptr.Deref(declared.AppProtocol, ""); protocol != "" {
			fields["appProtocol"] = protocol
		}
		if declared.NodePort != 0 {
			fields["nodePort"] = int64(declared.NodePort)
		}
	}
	return ports
}

// restoreNodePorts sets the node ports of the same certificates.
func restoreNodePorts(tls, now any) {
	for _, one := range listOf(tls) {
		for _, other := range listOf(now) {
			restored, _ := one.(map[string]any)
			live, _ := other.(map[string]any)
			if nodePort, found := live["nodePort"]; found && live["secretName"] == restored["secretName"] {
				restored["nodePort"] = nodePort
			}
		}
	}
}

func listOf(value any) []any {
	list, _ := value.([]any)
	return slices.Clone(list)
}
