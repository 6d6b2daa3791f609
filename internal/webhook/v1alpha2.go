package webhook

import (
	"context"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	kjson "sigs.k8s.io/json"

	"github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/conversion"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/ratchet"
	"github.com/example/nginx-operator/internal/validation"
)

// matchPolicy Exact: only a write at v1alpha2 needs it. verbs: a new object has nothing to remove
// or to keep, so a create costs one review. internal/defaults has all defaults.
//
// +kubebuilder:webhook:path=/mutate-operator-example-com-v1alpha2-nginxoperator,mutating=true,failurePolicy=ignore,matchPolicy=Exact,sideEffects=None,timeoutSeconds=5,groups=operator.example.com,resources=nginxoperators,verbs=update,versions=v1alpha2,name=default.v1alpha2.nginxoperators.operator.example.com,admissionReviewVersions=v1

// Defaulter completes the removal of fields in a server-side apply, and keeps a default port that
// an update would remove. Up to release 0.6.0 it set this port in each new object.
type Defaulter struct{}

var _ admission.Defaulter[*v1alpha2.NginxOperator] = Defaulter{}

// Default removes fields that an applier has dropped (conversion.RemoveDropped), and keeps the
// default port of the first certificate (defaults.KeepTLS).
func (Defaulter) Default(ctx context.Context, object *v1alpha2.NginxOperator) error {
	if object.DeletionTimestamp != nil {
		return nil
	}
	if err := complete(ctx, object); err != nil {
		// The remaining object is valid, but has more than the applier wants. This is no reason to
		// reject the write.
		log.FromContext(ctx).Error(err, "Failed to remove what an applier dropped")
	}
	return nil
}

func complete(ctx context.Context, object *v1alpha2.NginxOperator) error {
	request, err := admission.RequestFromContext(ctx)
	if err != nil {
		return err
	}
	if request.Operation != admissionv1.Update {
		return nil
	}
	old := &v1alpha2.NginxOperator{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(request.OldObject.Raw, old); err != nil {
		return fmt.Errorf("failed to read the stored object: %w", err)
	}
	err = conversion.RemoveDropped(old, object)
	object.Spec.TLS = defaults.KeepTLS(&old.Spec, &object.Spec)
	return err
}

// specPath is the path of the spec in messages.
var specPath = field.NewPath("spec")

// matchPolicy Exact: for the reason, see fromV1alpha1.
//
// +kubebuilder:webhook:path=/validate-operator-example-com-v1alpha2-nginxoperator,mutating=false,failurePolicy=ignore,matchPolicy=Exact,sideEffects=None,timeoutSeconds=5,groups=operator.example.com,resources=nginxoperators,verbs=create;update,versions=v1alpha1;v1alpha2,name=validate.nginxoperators.operator.example.com,admissionReviewVersions=v1

// Validator rejects specs that the operator cannot apply, and warns of probable mistakes. Each
// reconcile validates again, because a write succeeds even if the webhook is unavailable.
type Validator struct {
	// Verdict returns the errors that the API server finds in the Pod template of an object, or a
	// warning if the template was not checked. It is optional.
	Verdict func(ctx context.Context, object *v1alpha2.NginxOperator) (field.ErrorList, admission.Warnings)
	// Patches returns the errors and the warnings for the patches of an object. It may be nil.
	Patches func(object *v1alpha2.NginxOperator) (field.ErrorList, []string)
	// Refusals returns the values of an object that are rejected unless the stored object has them.
	// It may be nil.
	Refusals func(object *v1alpha2.NginxOperator) []ratchet.Refusal
	// Watches reports whether the operator manages the objects of a namespace. It may be nil.
	Watches func(namespace string) bool
}

var _ admission.Validator[*v1alpha2.NginxOperator] = Validator{}

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
		if now := v.Refusals(object); len(now) > 0 {
			errs, _ = ratchet.Split(v.Refusals(old), now)
		}
	}
	var unverified admission.Warnings
	if len(errs) == 0 && v.Verdict != nil && validation.NeedsPodVerdict(&old.Spec, &object.Spec) {
		errs, unverified = v.Verdict(ctx, object)
	}

	request, err := admission.RequestFromContext(ctx)
	fromV1alpha1 := err == nil && isV1alpha1(request)
	if fromV1alpha1 {
		errs = forV1alpha1(errs, object.Name)
	}

	unwatched := v.unwatched(object.Namespace)
	switch {
	case len(errs) > 0:
		return nil, apierrors.NewInvalid(v1alpha2.GroupVersion.WithKind("NginxOperator").GroupKind(), object.Name, errs)
	case fromV1alpha1:
		return slices.Concat(unwatched, unverified), nil
	default:
		return slices.Concat(unwatched, unverified, validation.Warnings(&object.Spec, old.Status.Certificates), warnings), nil
	}
}

// unwatched returns a warning if the operator leaves the objects of a namespace alone. They are
// admitted, because an administrator may add the namespace later.
func (v Validator) unwatched(namespace string) admission.Warnings {
	if v.Watches == nil || v.Watches(namespace) {
		return nil
	}
	return admission.Warnings{fmt.Sprintf("the operator does not watch namespace %q, so it creates nothing for this object: "+
		"add the namespace to the operator's flag --watch-namespaces, or create the object in a namespace that it watches", namespace)}
}

func isV1alpha1(request admission.Request) bool {
	return request.RequestKind != nil && request.RequestKind.Version == v1alpha1.GroupVersion.Version
}

// forV1alpha1 says how to change the fields, which v1alpha1 does not have. The schema of v1alpha1
// validates its own fields.
func forV1alpha1(errs field.ErrorList, name string) field.ErrorList {
	out := make(field.ErrorList, 0, len(errs))
	for _, err := range errs {
		converted := *err
		converted.Detail = strings.ReplaceAll(err.Detail, "spec.ports[0].port", "spec.port") + fmt.Sprintf(
			" (a field of v1alpha2; to change it, run kubectl edit nginxoperators.v1alpha2.%s %s)", v1alpha2.GroupVersion.Group, name)
		out = append(out, &converted)
	}
	return out
}
