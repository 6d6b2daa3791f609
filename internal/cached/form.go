package cached

import (
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/example/nginx-operator/internal/wellknown"
)

// The cache has the ports of a Pod, and the ports and the ConfigMaps of a ReplicaSet, in its
// annotations: a container and a volume take a kilobyte with nothing but a name. The names of the
// annotations are random, so no client can forge them.
var (
	annotationPorts  = "internal.operator.example.com/ports-" + rand.String(20)
	annotationMounts = "internal.operator.example.com/mounts-" + rand.String(20)
)

const (
	// MaxPorts is the maximum number of ports of an object in the cache. An instance has up to 33
	// ports, and during a rollout those of two declarations.
	MaxPorts = 66
	// maxMounts is the maximum number of ConfigMaps. A spec has at most 256, in 16 volumes with 16
	// sources each, and the operator adds up to 19.
	maxMounts = 320
)

// ServingPorts returns the ports of the nginx container in a Pod or Pod template, or nil.
func ServingPorts(annotations map[string]string, spec *corev1.PodSpec) []corev1.ContainerPort {
	var ports []corev1.ContainerPort
	for pair := range strings.FieldsSeq(annotations[annotationPorts]) {
		name, text, _ := strings.Cut(pair, "=")
		if number, err := strconv.ParseInt(text, 10, 32); err == nil {
			ports = append(ports, corev1.ContainerPort{Name: name, ContainerPort: int32(number)})
		}
	}

	at := slices.IndexFunc(spec.Containers, func(container corev1.Container) bool { return container.Name == wellknown.OperandContainer })
	if at < 0 {
		return ports
	}
	for _, port := range spec.Containers[at].Ports {
		ports = append(ports, corev1.ContainerPort{Name: port.Name, ContainerPort: port.ContainerPort})
	}
	return ports
}

// KeepPorts adds the ports of the nginx container to the metadata of the form in the cache, with the
// annotation of the Pod or the template that has their numbers in the Service.
func KeepPorts(form *metav1.ObjectMeta, annotations map[string]string, spec *corev1.PodSpec) {
	ports := ServingPorts(annotations, spec)
	var pairs []string
	for _, port := range ports[:min(len(ports), MaxPorts)] {
		pairs = append(pairs, port.Name+"="+strconv.Itoa(int(port.ContainerPort)))
	}
	if len(pairs) > 0 {
		metav1.SetMetaDataAnnotation(form, annotationPorts, strings.Join(pairs, " "))
	}

	if numbers, exists := annotations[wellknown.AnnotationServicePorts]; exists && len(numbers) <= wellknown.MaxServicePorts {
		metav1.SetMetaDataAnnotation(form, wellknown.AnnotationServicePorts, numbers)
	}
}

// TemplateOf returns the Pod template of a ReplicaSet, or what the cache has of it.
func TemplateOf(replicaSet *appsv1.ReplicaSet) *corev1.PodTemplateSpec {
	_, hasPorts := replicaSet.Annotations[annotationPorts]
	_, hasMounts := replicaSet.Annotations[annotationMounts]
	if !hasPorts && !hasMounts {
		return &replicaSet.Spec.Template
	}
	return &corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: replicaSet.Annotations}}
}

// MountedConfigMaps returns the names of the ConfigMaps that the Pods of a template mount.
func MountedConfigMaps(template *corev1.PodTemplateSpec) []string {
	names := strings.Fields(template.Annotations[annotationMounts])
	for i := range template.Spec.Volumes {
		names = append(names, mountedBy(&template.Spec.Volumes[i])...)
	}
	return names
}

// KeepMounts adds the names of the mounted ConfigMaps to the metadata of the form in the cache. The
// ConfigMaps of the operator are first, so the bound never drops one, which the operator would then
// delete.
func KeepMounts(form *metav1.ObjectMeta, template *corev1.PodTemplateSpec) {
	names := strings.Fields(template.Annotations[annotationMounts])
	for _, own := range []bool{true, false} {
		for i := range template.Spec.Volumes {
			if volume := &template.Spec.Volumes[i]; IsOwnVolume(volume.Name) == own && len(names) < maxMounts {
				names = append(names, mountedBy(volume)...)
			}
		}
	}

	names = slices.DeleteFunc(names, func(name string) bool { return len(name) > validation.DNS1123SubdomainMaxLength })
	if len(names) > 0 {
		metav1.SetMetaDataAnnotation(form, annotationMounts, strings.Join(names[:min(len(names), maxMounts)], " "))
	}
}

func mountedBy(volume *corev1.Volume) []string {
	if volume.ConfigMap != nil {
		return []string{volume.ConfigMap.Name}
	}
	if volume.Projected == nil {
		return nil
	}

	var names []string
	for _, source := range volume.Projected.Sources {
		if source.ConfigMap != nil {
			names = append(names, source.ConfigMap.Name)
		}
	}
	return names
}

// maxIngress is the maximum number of load balancer addresses in the cache and in our status.
const maxIngress = 16

// BalancerAddresses returns the addresses of a Service's load balancer, or nil if the Service
// requests none: one that was of type LoadBalancer can still have addresses.
func BalancerAddresses(service *corev1.Service) []corev1.LoadBalancerIngress {
	all := service.Status.LoadBalancer.Ingress
	if service.Spec.Type != corev1.ServiceTypeLoadBalancer {
		return nil
	}

	var out []corev1.LoadBalancerIngress
	for _, at := range all[:min(len(all), maxIngress)] {
		if max(len(at.IP), len(at.Hostname)) <= validation.DNS1123SubdomainMaxLength {
			out = append(out, corev1.LoadBalancerIngress{IP: at.IP, Hostname: at.Hostname})
		}
	}

	return slices.Clip(out)
}

// BackendPort returns the port of the Service in the first path of an Ingress, or 0.
func BackendPort(ingress *networkingv1.Ingress) int32 {
	backend := ingress.Spec.DefaultBackend
	if path := FirstPath(ingress); path != nil {
		backend = &path.Backend
	}
	if backend == nil || backend.Service == nil {
		return 0
	}
	return backend.Service.Port.Number
}

// FirstPath returns the first path of an Ingress, or nil if its first rule has none.
func FirstPath(ingress *networkingv1.Ingress) *networkingv1.HTTPIngressPath {
	rules := ingress.Spec.Rules
	if len(rules) == 0 || rules[0].HTTP == nil || len(rules[0].HTTP.Paths) == 0 {
		return nil
	}
	return &rules[0].HTTP.Paths[0]
}

// RoutePort returns the port of the Service in the first rule of an HTTPRoute, or 0.
func RoutePort(route *gatewayv1.HTTPRoute) int32 {
	if rules := route.Spec.Rules; len(rules) > 0 && len(rules[0].BackendRefs) > 0 {
		return ptr.Deref(rules[0].BackendRefs[0].Port, 0)
	}
	return 0
}
