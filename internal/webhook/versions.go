package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	kjson "sigs.k8s.io/json"

	"github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/codec"
	"github.com/example/nginx-operator/internal/conversion"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/ratchet"
	"github.com/example/nginx-operator/internal/schema"
	"github.com/example/nginx-operator/internal/validation"
	"github.com/example/nginx-operator/internal/wellknown"
	"github.com/example/nginx-operator/pkg/bounds"
)

// PathV1alpha1 is the path of the webhook server for writes at v1alpha1.
const PathV1alpha1 = "/mutate-operator-example-com-v1alpha1-nginxoperator"

// matchPolicy Exact: a write at v1alpha2 is complete, so there is nothing to restore.
// failurePolicy Fail: without an answer, the write would remove all fields that v1alpha1 cannot
// express. While the operator is down, the write fails anyway, because the operator converts it.
//
// +kubebuilder:webhook:path=/mutate-operator-example-com-v1alpha1-nginxoperator,mutating=true,failurePolicy=fail,matchPolicy=Exact,sideEffects=None,timeoutSeconds=5,groups=operator.example.com,resources=nginxoperators,verbs=create;update,versions=v1alpha1,name=keep.v1alpha1.nginxoperators.operator.example.com,admissionReviewVersions=v1

// keepAnnotation restores the annotation with fields that v1alpha1 cannot express. kubectl replace
// with a manifest for v1alpha1, and clients that update an old copy, would remove it.
func keepAnnotation(_ context.Context, request admission.Request) admission.Response {
	for _, raw := range [][]byte{request.Object.Raw, request.OldObject.Raw} {
		if err := bounds.JSON(raw); err != nil {
			return admission.Errored(http.StatusBadRequest, fmt.Errorf("failed to read the object: %w", err))
		}
	}

	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(request.Object.Raw); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("failed to read the object: %w", err))
	}

	annotations := object.GetAnnotations()
	given, isGiven := annotations[wellknown.AnnotationV1alpha2]
	if request.Operation == admissionv1.Create {
		return admitGiven(request.Object.Raw, given)
	}

	old := &unstructured.Unstructured{}
	if err := old.UnmarshalJSON(request.OldObject.Raw); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("failed to read the stored object: %w", err))
	}

	if manager, found := conversion.LosesPort(old.GetManagedFields(), object.GetManagedFields()); found {
		return admission.Denied(fmt.Sprintf("field manager %q applied this object at v1alpha2, with a port name that v1alpha1 does not "+
			"support, so the API server cannot apply spec.port. Apply at v1alpha2, or at v1alpha1 with another field manager", manager))
	}

	stored, isStored := old.GetAnnotations()[wellknown.AnnotationV1alpha2]
	if given == stored && isGiven == isStored {
		return admission.Allowed("")
	}
	if conversion.Check(stored) != nil && isGiven {
		// A client may restore a damaged annotation.
		return admitGiven(request.Object.Raw, given)
	}

	response := admission.Patched("", restoreAnnotation(len(annotations) > 0, stored, isStored))
	if isGiven && !conversion.Same(given, stored) {
		response = response.WithWarnings(fmt.Sprintf("metadata.annotations[%s] is managed by the operator and was not changed. To change "+
			"these fields, run kubectl edit nginxoperators.v1alpha2.operator.example.com %s",
			wellknown.AnnotationV1alpha2, request.Name))
	}

	return response
}

func restoreAnnotation(hasOthers bool, stored string, isStored bool) jsonpatch.Operation {
	const annotations = "/metadata/annotations"
	path := annotations + "/" + strings.ReplaceAll(wellknown.AnnotationV1alpha2, "/", "~1")
	switch {
	case !isStored:
		return jsonpatch.NewOperation("remove", path, nil)
	case !hasOthers:
		return jsonpatch.NewOperation("add", annotations, map[string]string{wellknown.AnnotationV1alpha2: stored})
	default:
		return jsonpatch.NewOperation("add", path, stored)
	}
}

// admitGiven admits the given annotation, which restores a backup, unless it is unreadable, or the
// schema of v1alpha2 rejects the resulting spec, which the API server does not validate.
func admitGiven(raw []byte, given string) admission.Response {
	err := conversion.Check(given)
	if err == nil && given != "" {
		err = checkConverted(raw)
	}
	if err != nil {
		return admission.Denied(fmt.Sprintf("metadata.annotations[%s] must be the value that the operator wrote: %s. Restore it, or remove it "+
			"and set its fields at v1alpha2", wellknown.AnnotationV1alpha2, err))
	}

	return admission.Allowed("")
}

func checkConverted(raw []byte) error {
	converted, err := upgrade(raw)
	if err != nil {
		return err
	}

	object, err := bounds.Read(converted)
	if err != nil {
		return err
	}

	spec, _ := object["spec"].(map[string]any)
	return schema.Violations(spec, specPath).ToAggregate()
}

// matchPolicy Exact: only a write at v1alpha2 needs it. verbs: a new object has nothing to remove
// or to keep, so a create costs one review. internal/defaults has all defaults.
//
// +kubebuilder:webhook:path=/mutate-operator-example-com-v1alpha2-nginxoperator,mutating=true,failurePolicy=ignore,matchPolicy=Exact,sideEffects=None,timeoutSeconds=5,groups=operator.example.com,resources=nginxoperators,verbs=update,versions=v1alpha2,name=default.v1alpha2.nginxoperators.operator.example.com,admissionReviewVersions=v1

// setDefaults removes fields that an applier has dropped (conversion.RemoveDropped), and keeps the
// default port of the first certificate (defaults.KeepTLS). The patch has only these changes: the
// Go type writes quantities in another form than the manifest ("500m" for "0.5").
func setDefaults(ctx context.Context, request admission.Request) admission.Response {
	object, old := &v1alpha2.NginxOperator{}, &v1alpha2.NginxOperator{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(request.Object.Raw, object); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("failed to read the object: %w", err))
	}
	if object.DeletionTimestamp != nil || request.Operation != admissionv1.Update {
		return admission.Allowed("")
	}

	before := object.Spec.DeepCopy()
	err := kjson.UnmarshalCaseSensitivePreserveInts(request.OldObject.Raw, old)
	if err == nil {
		err = conversion.RemoveDropped(old, object)
		object.Spec.TLS = defaults.KeepTLS(&old.Spec, &object.Spec)
	}
	if err != nil {
		// The remaining object is valid, but has more than the applier wants.
		log.FromContext(ctx).Error(err, "Failed to remove the fields that a server-side apply dropped")
	}
	if defaults.SameSpec(before, &object.Spec) {
		return admission.Allowed("")
	}

	// The metadata is unchanged, and can be large.
	original, err := codec.Encode(map[string]any{"spec": before})
	changed, changedErr := codec.Encode(map[string]any{"spec": object.Spec})
	if err := errors.Join(err, changedErr); err != nil {
		return admission.Errored(http.StatusInternalServerError, fmt.Errorf("failed to encode the spec: %w", err))
	}

	return admission.PatchResponseFromRaw(original, changed)
}

var specPath = field.NewPath("spec")

// matchPolicy Exact: for the reason, see fromV1alpha1.
//
// +kubebuilder:webhook:path=/validate-operator-example-com-v1alpha2-nginxoperator,mutating=false,failurePolicy=ignore,matchPolicy=Exact,sideEffects=None,timeoutSeconds=5,groups=operator.example.com,resources=nginxoperators,verbs=create;update,versions=v1alpha1;v1alpha2,name=validate.nginxoperators.operator.example.com,admissionReviewVersions=v1

// Validator rejects specs that the operator cannot apply, and warns of probable mistakes. Each
// reconcile validates again, because the webhook can be unavailable. Each field may be nil.
type Validator struct {
	// Verdict is dryRun.ask.
	Verdict func(ctx context.Context, object *v1alpha2.NginxOperator) (field.ErrorList, admission.Warnings)
	// Patches and Refusals are CheckPatches and Refusals of Render.
	Patches  func(object *v1alpha2.NginxOperator) (field.ErrorList, []string)
	Refusals func(object *v1alpha2.NginxOperator) []ratchet.Refusal
	// Watches reports whether the operator manages the objects of a namespace.
	Watches func(namespace string) bool
}

// ValidateCreate validates a new object.
func (v Validator) ValidateCreate(ctx context.Context, object *v1alpha2.NginxOperator) (admission.Warnings, error) {
	return v.validate(ctx, &v1alpha2.NginxOperator{}, object)
}

// ValidateUpdate validates a changed object. It admits changes of labels and finalizers, even if
// the stored spec violates the rules of this release.
func (v Validator) ValidateUpdate(ctx context.Context, old, object *v1alpha2.NginxOperator) (admission.Warnings, error) {
	if object.DeletionTimestamp != nil || defaults.SameSpec(&old.Spec, &object.Spec) {
		return nil, nil
	}
	return v.validate(ctx, old, object)
}

// ValidateDelete admits every deletion. The API server does not call it.
func (Validator) ValidateDelete(context.Context, *v1alpha2.NginxOperator) (admission.Warnings, error) {
	return nil, nil
}

func (v Validator) validate(ctx context.Context, old, object *v1alpha2.NginxOperator) (admission.Warnings, error) {
	errs := validation.Spec(&object.Spec, specPath)
	var warnings []string
	if len(errs) == 0 && v.Patches != nil {
		errs, warnings = v.Patches(object)
	}

	if len(errs) == 0 && v.Refusals != nil {
		if refusals := v.Refusals(object); len(refusals) > 0 {
			errs, _ = ratchet.Split(v.Refusals(old), refusals)
		}
	}

	var unverified admission.Warnings
	if len(errs) == 0 && v.Verdict != nil && validation.NeedsPodVerdict(&old.Spec, &object.Spec) {
		errs, unverified = v.Verdict(ctx, object)
	}

	request, err := admission.RequestFromContext(ctx)
	atV1alpha1 := err == nil && request.RequestKind != nil && request.RequestKind.Version == v1alpha1.GroupVersion.Version
	if atV1alpha1 {
		errs = forV1alpha1(errs, object.Name)
	}

	unwatched := v.unwatched(object.Namespace)
	switch {
	case len(errs) > 0:
		return nil, apierrors.NewInvalid(v1alpha2.GroupVersion.WithKind("NginxOperator").GroupKind(), object.Name, errs)
	case atV1alpha1:
		return slices.Concat(unwatched, unverified), nil
	default:
		return slices.Concat(unwatched, unverified, validation.Warnings(&object.Spec, old.Status.Certificates), warnings), nil
	}
}

func (v Validator) unwatched(namespace string) admission.Warnings {
	if v.Watches == nil || v.Watches(namespace) {
		return nil
	}
	return admission.Warnings{fmt.Sprintf("the operator does not watch namespace %q, so it creates nothing for this object; "+
		"add the namespace to the operator's flag --watch-namespaces, or create the object in a namespace that it watches", namespace)}
}

// forV1alpha1 adds how to change the fields, which v1alpha1 does not have.
func forV1alpha1(errs field.ErrorList, name string) field.ErrorList {
	all := make(field.ErrorList, 0, len(errs))
	for _, err := range errs {
		converted := *err
		converted.Detail = strings.ReplaceAll(err.Detail, "spec.ports[0].port", "spec.port") + fmt.Sprintf(
			" (a field of v1alpha2; to change it, run kubectl edit nginxoperators.v1alpha2.%s %s)", v1alpha2.GroupVersion.Group, name)
		all = append(all, &converted)
	}
	return all
}
