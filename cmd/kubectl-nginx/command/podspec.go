package command

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// podSpec is the part of a spec that reaches the Pods. fields can have more than this release knows.
type podSpec struct {
	fields map[string]any
	typed  v1alpha2.NginxOperatorSpec
	// service has the ports of the Service of these Pods, which have the names.
	service []corev1.ServicePort
}

// spec completes the fields with those of a live object that do not reach the Pods.
func (p podSpec) spec(live *unstructured.Unstructured) map[string]any {
	current, _, _ := unstructured.NestedMap(live.Object, "spec")
	retain(p.fields, current, "replicas", "autoscaling", "paused", "rollout", "service", "networkPolicy", "expose")
	p.restorePorts()
	for _, tls := range listOf(p.fields["tls"]) {
		for _, other := range listOf(current["tls"]) {
			if other["secretName"] == tls["secretName"] {
				retain(tls, other, "nodePort")
			}
		}
	}

	if monitoring, isSet := p.fields["monitoring"].(map[string]any); isSet {
		before, _ := current["monitoring"].(map[string]any)
		retain(monitoring, before, "podMonitor", "alerts")
	}

	patches, _ := p.fields["patches"].([]any)
	for _, patch := range listOf(current["patches"]) {
		if kind, _, _ := unstructured.NestedString(patch, "target", "kind"); kind != "Deployment" {
			patches = append(patches, patch)
		}
	}

	if len(patches) > 0 {
		p.fields["patches"] = patches
	}

	return p.fields
}

func retain(into, live map[string]any, names ...string) {
	for _, name := range names {
		if value, isSet := live[name]; isSet {
			into[name] = value
		}
	}
}

// restorePorts sets the names, protocols, and node ports of the Service.
func (p podSpec) restorePorts() {
	for i, port := range listOf(p.fields["ports"]) {
		number := p.typed.Ports[i].Port
		at := slices.IndexFunc(p.service, func(declared corev1.ServicePort) bool { return declared.Port == number })
		if at < 0 {
			port["name"] = fmt.Sprintf("p-%d", number)
			continue
		}

		declared := p.service[at]
		port["name"] = declared.Name
		if protocol := ptr.Deref(declared.AppProtocol, ""); protocol != "" {
			port["appProtocol"] = protocol
		}
		if declared.NodePort != 0 {
			port["nodePort"] = int64(declared.NodePort)
		}
	}
}

// listOf returns the objects of a list.
func listOf(value any) []map[string]any {
	var objects []map[string]any
	list, _ := value.([]any)
	for _, item := range list {
		object, _ := item.(map[string]any)
		objects = append(objects, object)
	}

	return objects
}
