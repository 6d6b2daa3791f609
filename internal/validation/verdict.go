package validation

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	differ := func(before, now any) bool { return !equality.Semantic.DeepEqual(before, now) }
	workload := workloadOf(spec)
	return spec.Resources != nil && differ(before.Resources, spec.Resources) ||
		spec.PodTemplate != nil && differ(before.PodTemplate, spec.PodTemplate) ||
		differ(workload, &v1alpha2.NginxOperatorSpec{}) && differ(workloadOf(before), workload) ||
		patchesOf("Deployment", spec, field.NewPath("spec")) != nil && differ(before.Patches, spec.Patches)
}

// Verdict returns the faults that the API server found in a child of a spec as errors of the spec.
// It returns nothing for any other error, and for faults in fields that the spec does not set.
func Verdict(err error, spec *v1alpha2.NginxOperatorSpec, path *field.Path) field.ErrorList {
	return verdict(err, "", spec, path)
}

// PodVerdict is Verdict for the faults in a Deployment's Pod template.
func PodVerdict(err error, spec *v1alpha2.NginxOperatorSpec, path *field.Path) field.ErrorList {
	return verdict(err, "spec.template.", spec, path)
}

// verdict returns the faults in fields with a prefix as errors of the spec, with the field that a
// fault comes from, or with the patches of the kind.
func verdict(err error, prefix string, spec *v1alpha2.NginxOperatorSpec, path *field.Path) field.ErrorList {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}

	// Admission webhooks and policies return the same status. Only the message distinguishes them
	// from the API server's own validation.
	details := status.Status().Details
	kind := schema.GroupKind{Group: details.Group, Kind: details.Kind}
	if !strings.HasPrefix(status.Status().Message, fmt.Sprintf("%s %q is invalid: ", kind.String(), details.Name)) {
		return nil
	}

	spec = cmp.Or(spec, &v1alpha2.NginxOperatorSpec{})
	patches := patchesOf(kind.Kind, spec, path)
	var errs, ofPatches field.ErrorList
	for _, fault := range details.Causes {
		if !strings.HasPrefix(fault.Field, prefix) {
			continue
		}

		errorType := field.ErrorType(fault.Type)
		message := strings.TrimPrefix(strings.TrimPrefix(fault.Message, errorType.String()), ": ")
		at, isOfSpec := origin(fault.Field, spec)
		switch {
		case isOfSpec:
			detail := strings.Replace(message, fault.Field+" in body ", "", 1) // of a custom resource
			if isNodePort(fault.Field) {
				detail = "nodePort " + detail
			}
			errs = append(errs, &field.Error{
				Type: errorType, Field: bounded(path.String() + "." + at), BadValue: field.OmitValueType{}, Detail: bounded(detail),
			})
		case patches != nil:
			detail := bounded(fmt.Sprintf("%s: %s: %s", kind.Kind, fault.Field, message))
			ofPatches = append(ofPatches, field.Invalid(patches, field.OmitValueType{}, detail))
		}
	}

	return firstOf(append(errs, ofPatches...), path)
}

// patchesOf returns the field of the patches of a kind: the patch if there is one, spec.patches if
// there are several, and nil if there is none. In a child without patches, only fields of the table
// origins can be invalid.
func patchesOf(kind string, spec *v1alpha2.NginxOperatorSpec, path *field.Path) *field.Path {
	isOfKind := func(patch v1alpha2.Patch) bool { return patch.Target.Kind == kind }
	first := slices.IndexFunc(spec.Patches, isOfKind)
	switch {
	case first < 0:
		return nil
	case slices.ContainsFunc(spec.Patches[first+1:], isOfKind):
		return path.Child("patches")
	}

	return path.Child("patches").Index(first).Child("patch")
}

// isNodePort reports whether a field of a Service is a node port. Its index does not identify the
// port in the spec, because the Service joins the ports of spec.ports and spec.tls. The message has
// the number.
func isNodePort(child string) bool {
	return strings.HasPrefix(child, "spec.ports[") && strings.HasSuffix(child, ".nodePort")
}

// origin returns the field of the spec that a field of a child comes from.
func origin(child string, spec *v1alpha2.NginxOperatorSpec) (string, bool) {
	if at, isOfElement := originOfElement(child, spec); isOfElement {
		return at, true
	}
	if isNodePort(child) {
		return "service", true
	}

	for _, known := range origins {
		rest, isBelow := strings.CutPrefix(child, known.child)
		if !isBelow || rest != "" && !strings.ContainsAny(rest[:1], ".[") {
			continue
		}

		if known.spec == exposedHosts {
			if spec.Expose != nil && spec.Expose.HTTPRoute != nil {
				return "", false // the operator renders the rules of an HTTPRoute
			}
			rest = strings.TrimSuffix(strings.Replace(rest, ".http.paths[", ".paths[", 1), ".path")
		}

		return known.spec + rest, true
	}

	return "", false
}

// assetVolumes is the number of volumes of the Deployment before the volumes of the spec.
const assetVolumes = 2

// elementOfPods matches fields of elements in the Pod template's lists that include elements of the
// spec.
var elementOfPods = regexp.MustCompile(`^spec\.template\.spec\.(volumes|initContainers)\[(\d{1,3})\](.*)$`)

// originOfElement returns the field of the spec that a field of a list element comes from. The
// index in the Pod template differs from the index in the spec.
func originOfElement(child string, spec *v1alpha2.NginxOperatorSpec) (string, bool) {
	match := elementOfPods.FindStringSubmatch(child)
	if match == nil {
		return "", false
	}

	list, rest, length := match[1], match[3], len(spec.Volumes)
	index, err := strconv.Atoi(match[2])
	switch {
	case list == "volumes":
		index -= assetVolumes
	case index < len(spec.InitContainers):
		length = len(spec.InitContainers)
	default:
		list, length, index = "sidecars", len(spec.Sidecars), index-len(spec.InitContainers)
	}

	return fmt.Sprintf("%s[%d]%s", list, index, rest), err == nil && index >= 0 && index < length
}
