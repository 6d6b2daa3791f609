package migrate

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// findService returns the Service that selects Pods with these labels, or nil if no Service does.
func findService(manifests []*unstructured.Unstructured, namespace string, podLabels map[string]string) *unstructured.Unstructured {
	at := slices.IndexFunc(manifests, func(one *unstructured.Unstructured) bool {
		selector, found, err := unstructured.NestedStringMap(one.Object, "spec", "selector")
		return one.GetKind() == "Service" && one.GetNamespace() == namespace && err == nil && found && len(selector) > 0 &&
			labels.SelectorFromSet(selector).Matches(labels.Set(podLabels))
	})
	if at < 0 {
		return nil
	}
	return manifests[at]
}

// service converts a Service and the container ports that it targets. The manifest is nil if there
// is no Service.
func (r *Result) service(manifest *unstructured.Unstructured, containerPorts []source) {
	listens := map[string]int32{}
	var declared []v1alpha2.Port
	for _, port := range containerPorts {
		var one corev1.ContainerPort
		port.into(&one.Name, "name")
		port.into(&one.ContainerPort, "containerPort")
		port.drop("protocol")
		port.rest()
		listens[one.Name] = one.ContainerPort
		declared = append(declared, v1alpha2.Port{Name: nameOf(one.Name, one.ContainerPort, len(containerPorts)), Port: one.ContainerPort})
	}
	if manifest == nil {
		r.Object.Spec.Ports = declared
		return
	}
	from := newSource(manifest, &r.Lost)
	r.Object.Spec.Ports = servicePorts(from.in("spec").list("ports"), listens)
	var out v1alpha2.Service
	from.into(&out.Annotations, "metadata", "annotations")
	from.into(&out.Labels, "metadata", "labels")
	spec := from.in("spec")
	spec.drop("selector", "clusterIP", "clusterIPs", "healthCheckNodePort", "allocateLoadBalancerNodePorts", "publishNotReadyAddresses")
	spec.all(&out)
	if out.Type == corev1.ServiceTypeClusterIP {
		out.Type = ""
	}
	// Ignore the API server's defaults.
	if out.SessionAffinity == corev1.ServiceAffinityNone {
		out.SessionAffinity = ""
	}
	if out.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyCluster {
		out.ExternalTrafficPolicy = ""
	}
	if out.InternalTrafficPolicy != nil && *out.InternalTrafficPolicy == corev1.ServiceInternalTrafficPolicyCluster {
		out.InternalTrafficPolicy = nil
	}
	if out.IPFamilyPolicy != nil && *out.IPFamilyPolicy == corev1.IPFamilyPolicySingleStack {
		out.IPFamilyPolicy, out.IPFamilies = nil, nil
	}
	if !equality.Semantic.DeepEqual(out, v1alpha2.Service{}) {
		r.Object.Spec.Service = &out
	}
	from.rest()
}

func servicePorts(ports []source, listens map[string]int32) []v1alpha2.Port {
	var out []v1alpha2.Port
	for _, port := range ports {
		one := v1alpha2.Port{}
		var target intstr.IntOrString
		port.into(&one.Port, "port")
		port.into(&one.NodePort, "nodePort")
		port.into(&one.AppProtocol, "appProtocol")
		port.into(&target, "targetPort")
		one.Name = nameOf(port.text("name"), one.Port, len(ports))
		port.drop("protocol")
		port.rest()
		number := cmp.Or(target.IntVal, listens[target.StrVal], one.Port)
		if number != one.Port {
			one.TargetPort = &number
		}
		out = append(out, one)
	}
	return out
}

// nameOf returns the name of a port, or a default name if the port has none. of is the number of
// ports.
func nameOf(name string, number int32, of int) string {
	switch {
	case name != "":
		return name
	case of == 1:
		return v1alpha2.DefaultPortName
	}
	return fmt.Sprintf("port-%d", number)
}
