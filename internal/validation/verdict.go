package validation

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// origins maps fields of children to the fields of the spec that they are copied from.
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
	{"spec.LoadBalancerSourceRanges", "service.loadBalancerSourceRanges"}, // Kubernetes' own spelling
	{"spec.ipFamilyPolicy", "service.ipFamilyPolicy"},
	{"spec.ipFamilies", "service.ipFamilies"},
	{"spec.clusterIPs", "service.ipFamilies"}, // if the families do not match the existing addresses
	{"spec.ingress[0].from", "networkPolicy.from"},
	{"spec.ingressClassName", "expose.ingress.className"},
	{"spec.rules", exposedHosts},
	{"spec.parentRefs", "expose.httpRoute.parentRefs"},
	{"spec.hostnames", "expose.httpRoute.hostnames"},
	{"annotations", "expose.ingress.annotations"}, // Kubernetes reports the annotation of the class here
}

// exposedHosts is the field of the spec that the rules of an Ingress come from.
const exposedHosts = "expose.ingress.hosts"

// NeedsPodVerdict reports whether a spec sets fields of the Pod template that only the API server
// can validate, and whether they differ from the previous spec.
func NeedsPodVerdict(before, spec *v1alpha2.NginxOperatorSpec) bool {
	return spec.Resources != nil && !equality.Semantic.DeepEqual(before.Resources, spec.Resources) ||
		spec.PodTemplate != nil && !equality.Semantic.DeepEqual(before.PodTemplate, spec.PodTemplate) ||
		changesWorkload(before, spec) || patchesDeployment(spec) && !equality.Semantic.DeepEqual(before.Patches, spec.Patches)
}

// Verdict returns the faults that the API server found in a child of a spec as errors of the spec.
// It returns nothing for any other error, and for faults in fields that the spec does not set.
func Verdict(err error, spec *v1alpha2.NginxOperatorSpec, path *field.Path) field.ErrorList {
	kind, faults := faultsOf(err)
	return verdict(kind, faults, spec, path)
}

// PodVerdict is Verdict for the faults in a Deployment's Pod template.
func PodVerdict(err error, spec *v1alpha2.NginxOperatorSpec, path *field.Path) field.ErrorList {
	kind, faults := faultsOf(err)
	isElsewhere := func(fault metav1.StatusCause) bool { return !strings.HasPrefix(fault.Field, "spec.template.") }
	return verdict(kind, slices.DeleteFunc(faults, isElsewhere), spec, path)
}

// faultsOf returns the faults that the API server's own validation found in an object, and the kind
// of the object. Admission webhooks and policies return the same status, so only the message
// distinguishes them.
func faultsOf(err error) (kind string, faults []metav1.StatusCause) {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return "", nil
	}

	details := status.Status().Details
	of := schema.GroupKind{Group: details.Group, Kind: details.Kind}
	if !strings.HasPrefix(status.Status().Message, fmt.Sprintf("%s %q is invalid: ", of.String(), details.Name)) {
		return "", nil
	}
	return details.Kind, slices.Clone(details.Causes)
}

// verdict returns faults as errors of the spec, with the field that a fault comes from, or with the
// patches of the kind.
func verdict(kind string, faults []metav1.StatusCause, spec *v1alpha2.NginxOperatorSpec, path *field.Path) field.ErrorList {
	var errs, ofPatches field.ErrorList
	patches := patchesOf(kind, spec, path)
	for _, fault := range faults {
		message := strings.TrimPrefix(strings.TrimPrefix(fault.Message, field.ErrorType(fault.Type).String()), ": ")

		at, found := origin(fault.Field, spec)
		switch {
		case found:
			detail := withoutPlace(message, fault.Field)
			if isNodePort(fault.Field) {
				detail = "nodePort " + detail
			}
			errs = append(errs, &field.Error{
				Type: field.ErrorType(fault.Type), Field: bounded(path.String() + "." + at), BadValue: field.OmitValueType{}, Detail: bounded(detail),
			})
		case patches != nil:
			detail := bounded(fmt.Sprintf("%s: %s: %s", kind, fault.Field, message))
			ofPatches = append(ofPatches, field.Invalid(patches, field.OmitValueType{}, detail))
		}
	}
	return firstOf(append(errs, ofPatches...), path)
}

// withoutPlace removes the field from an API server's message about a custom resource. The error
// already has it.
func withoutPlace(message, child string) string {
	return strings.Replace(message, child+" in body ", "", 1)
}

// isNodePort reports whether a field of a Service is a node port. Its index does not identify the
// port in the spec, because the Service joins the ports of spec.ports and spec.tls. The message has
// the number.
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
					return "", false // the operator renders the rules of an HTTPRoute
				}
				rest = inExpose(rest)
			}
			return known.spec + rest, true
		}
	}
	return "", false
}
