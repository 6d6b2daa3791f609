package validation

import (
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
)

// origins says for the fields of children that are handed on as they are which field of the spec they come from.
var origins = []struct{ child, spec string }{
	{"spec.template.labels", "podTemplate.labels"},
	{"spec.template.metadata.labels", "podTemplate.labels"},
	{"spec.template.annotations", "podTemplate.annotations"},
	{"spec.template.metadata.annotations", "podTemplate.annotations"},
	{"spec.template.spec.nodeSelector", "podTemplate.nodeSelector"},
	{"spec.template.spec.tolerations", "podTemplate.tolerations"},
	{"spec.template.spec.affinity", "podTemplate.affinity"},
	{"spec.template.spec.topologySpreadConstraints", "podTemplate.topologySpreadConstraints"},
	{"spec.template.spec.priorityClassName", "podTemplate.priorityClassName"},
	{"spec.template.spec.imagePullSecrets", "podTemplate.imagePullSecrets"},
	{"spec.template.spec.containers[0].resources", "resources"},
	{"spec.template.spec.containers[0].image", "image"},
	{"spec.template.spec.containers[0].env", "env"},
	{"spec.template.spec.serviceAccountName", "serviceAccountName"},
	{"spec.template.spec.securityContext", "securityContext"},
	{"spec.LoadBalancerSourceRanges", "service.loadBalancerSourceRanges"}, // so Kubernetes writes it
	{"spec.ipFamilyPolicy", "service.ipFamilyPolicy"},
	{"spec.ipFamilies", "service.ipFamilies"},
	{"spec.clusterIPs", "service.ipFamilies"}, // which the addresses that it has already do not match
	{"spec.ingress[0].from", "networkPolicy.from"},
	{"spec.ingressClassName", "expose.ingress.className"},
	{"spec.rules", exposedHosts},
	{"spec.parentRefs", "expose.httpRoute.parentRefs"},
	{"spec.hostnames", "expose.httpRoute.hostnames"},
	{"annotations", "expose.ingress.annotations"}, // so Kubernetes writes that of the class
}

// exposedHosts is the field of the spec that the rules of an Ingress come from.
const exposedHosts = "expose.ingress.hosts"

// maxVerdict bounds what of a field and of a message of the API server, both of which quote the user's text, is told.
const maxVerdict = 512

// NeedsVerdict returns the kinds of the children of which a spec says something that only the API server can judge, which it does
// where the child is written, and that the spec before did not say.
func NeedsVerdict(before, spec *v1alpha2.NginxOperatorSpec) []string {
	var out []string
	if spec.Resources != nil && !equality.Semantic.DeepEqual(before.Resources, spec.Resources) ||
		spec.PodTemplate != nil && !equality.Semantic.DeepEqual(before.PodTemplate, spec.PodTemplate) ||
		saysOtherWorkload(before, spec) {
		out = append(out, "Deployment")
	}
	service, ports := judgedOf(spec.Service), nodePortsOf(spec)
	if service != nil && !equality.Semantic.DeepEqual(judgedOf(before.Service), service) ||
		len(ports) > 0 && !slices.Equal(nodePortsOf(before), ports) {
		out = append(out, "Service")
	}
	if policy := spec.NetworkPolicy; policy != nil && len(policy.From) > 0 && !equality.Semantic.DeepEqual(before.NetworkPolicy, policy) {
		out = append(out, "NetworkPolicy")
	}
	if spec.Expose != nil && !equality.Semantic.DeepEqual(before.Expose, spec.Expose) {
		if spec.Expose.HTTPRoute != nil {
			out = append(out, "HTTPRoute")
		} else {
			out = append(out, "Ingress")
		}
	}
	if !equality.Semantic.DeepEqual(before.Patches, spec.Patches) {
		for _, declared := range spec.Patches {
			if !slices.Contains(out, declared.Target.Kind) {
				out = append(out, declared.Target.Kind)
			}
		}
	}
	return out
}

// judgedOf returns what only the API server can judge of a Service, nil where there is nothing.
func judgedOf(service *v1alpha2.Service) *v1alpha2.Service {
	if service == nil || len(service.LoadBalancerSourceRanges) == 0 && service.IPFamilyPolicy == nil && len(service.IPFamilies) == 0 {
		return nil
	}
	return &v1alpha2.Service{
		LoadBalancerSourceRanges: service.LoadBalancerSourceRanges,
		IPFamilyPolicy:           service.IPFamilyPolicy,
		IPFamilies:               service.IPFamilies,
	}
}

// nodePortsOf returns the ports of the nodes that a spec asks for.
func nodePortsOf(spec *v1alpha2.NginxOperatorSpec) []int32 {
	var out []int32
	for _, port := range defaults.ServicePorts(spec) {
		if port.NodePort != 0 {
			out = append(out, port.NodePort)
		}
	}
	return out
}

// Verdict returns what the API server found wrong with a child of a spec as errors of the spec. It returns nothing where
// the error is another one, or about nothing that the spec says.
func Verdict(err error, spec *v1alpha2.NginxOperatorSpec, path *field.Path) field.ErrorList {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	var errs field.ErrorList
	for _, cause := range status.Status().Details.Causes {
		at, found := origin(cause.Field, spec)
		if !found {
			continue
		}
		kind := field.ErrorType(cause.Type)
		detail := withoutPlace(strings.TrimPrefix(strings.TrimPrefix(cause.Message, kind.String()), ": "), cause.Field)
		if isNodePort(cause.Field) {
			detail = "nodePort " + detail
		}
		errs = append(errs, &field.Error{
			Type: kind, Field: bounded(path.String() + "." + at), BadValue: field.OmitValueType{}, Detail: bounded(detail),
		})
	}
	return firstOf(errs, path)
}

// bounded cuts a text that quotes the user's, at the end of a character.
func bounded(text string) string {
	if len(text) <= maxVerdict {
		return text
	}
	return strings.ToValidUTF8(text[:maxVerdict], "") + "…"
}

// isNodePort reports whether a field of a Service is a port of the nodes. Its message has the number, and by that it is found among
// the ports for plain HTTP and those of certificates.
func isNodePort(child string) bool {
	return strings.HasPrefix(child, "spec.ports[") && strings.HasSuffix(child, ".nodePort")
}

// origin returns the field of the spec that a field of a child comes from.
func origin(child string, spec *v1alpha2.NginxOperatorSpec) (string, bool) {
	if at, found := originOfElement(child, spec); found {
		return at, true
	}
	if isNodePort(child) {
		return "service", true
	}
	for _, known := range origins {
		if rest, found := strings.CutPrefix(child, known.child); found && (rest == "" || strings.ContainsAny(rest[:1], ".[")) {
			if known.spec == exposedHosts {
				if spec != nil && spec.Expose != nil && spec.Expose.HTTPRoute != nil {
					return "", false // the rules of an HTTPRoute are the operator's
				}
				rest = inExpose(rest)
			}
			return known.spec + rest, true
		}
	}
	return "", false
}
