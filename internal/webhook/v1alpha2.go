package webhook

import (
	"context"
	"fmt"
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
	"github.com/example/nginx-operator/internal/validation"
)

// matchPolicy Exact: v1alpha1 has no field that is defaulted here.
//
// +kubebuilder:webhook:path=/mutate-operator-example-com-v1alpha2-nginxoperator,mutating=true,failurePolicy=ignore,matchPolicy=Exact,sideEffects=None,timeoutSeconds=5,groups=operator.example.com,resources=nginxoperators,verbs=create;update,versions=v1alpha2,name=default.v1alpha2.nginxoperators.operator.example.com,admissionReviewVersions=v1

// Defaulter sets the defaults that depend on other fields, which the schema cannot, and ends what a server-side apply
// began.
type Defaulter struct{}

var _ admission.Defaulter[*v1alpha2.NginxOperator] = Defaulter{}

// Default gives the first certificate its port, so that it can be seen in the object, and removes what an applier has
// dropped (conversion.RemoveDropped).
func (Defaulter) Default(ctx context.Context, object *v1alpha2.NginxOperator) error {
	if object.DeletionTimestamp != nil {
		return nil
	}
	if err := removeDropped(ctx, object); err != nil {
		// What is left is right, if more than was asked for: no reason to refuse the write.
		log.FromContext(ctx).Error(err, "Failed to remove what an applier dropped")
	}
	object.Spec.TLS = defaults.TLS(&object.Spec)
	return nil
}

func removeDropped(ctx context.Context, object *v1alpha2.NginxOperator) error {
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
	return conversion.RemoveDropped(old, object)
}

// specPath is where the messages begin to say which field they are about.
var specPath = field.NewPath("spec")

// matchPolicy Exact: see fromV1alpha1, which has the reason.
//
// +kubebuilder:webhook:path=/validate-operator-example-com-v1alpha2-nginxoperator,mutating=false,failurePolicy=ignore,matchPolicy=Exact,sideEffects=None,timeoutSeconds=5,groups=operator.example.com,resources=nginxoperators,verbs=create;update,versions=v1alpha1;v1alpha2,name=validate.nginxoperators.operator.example.com,admissionReviewVersions=v1

// Validator refuses what the operator could not carry out, and warns of what is surely not meant. The controller asks
// for the same again in each reconcile, because a write also goes through where the webhook is not there.
type Validator struct {
	// Verdict asks the API server about what only it can judge of the children of some kinds, where that is not nil.
	Verdict func(ctx context.Context, object *v1alpha2.NginxOperator, kinds ...string) field.ErrorList
	// Patches returns what is wrong with the patches of an object, and what to warn of, where it is not nil.
	Patches func(object *v1alpha2.NginxOperator) (field.ErrorList, []string)
}

var _ admission.Validator[*v1alpha2.NginxOperator] = Validator{}

// ValidateCreate validates a new object.
func (v Validator) ValidateCreate(ctx context.Context, object *v1alpha2.NginxOperator) (admission.Warnings, error) {
	return v.validate(ctx, &v1alpha2.NginxOperator{}, object)
}

// ValidateUpdate validates a changed object. Whoever labels an object, or lets it go, is not held up by what was stored
// under the rules of another release.
func (v Validator) ValidateUpdate(ctx context.Context, old, object *v1alpha2.NginxOperator) (admission.Warnings, error) {
	if object.DeletionTimestamp != nil || defaults.SameSpec(&old.Spec, &object.Spec) {
		return nil, nil
	}
	return v.validate(ctx, old, object)
}

// ValidateDelete admits every deletion; the API server does not even ask.
func (Validator) ValidateDelete(context.Context, *v1alpha2.NginxOperator) (admission.Warnings, error) {
	return nil, nil
}

func (v Validator) validate(ctx context.Context, old, object *v1alpha2.NginxOperator) (admission.Warnings, error) {
	errs := validation.Spec(&object.Spec, specPath)
	var warnings []string
	if len(errs) == 0 && v.Patches != nil {
		errs, warnings = v.Patches(object)
	}
	if kinds := validation.NeedsVerdict(&old.Spec, &object.Spec); len(errs) == 0 && len(kinds) > 0 && v.Verdict != nil {
		errs = v.Verdict(ctx, object, kinds...)
	}
	request, err := admission.RequestFromContext(ctx)
	fromV1alpha1 := err == nil && isV1alpha1(request)
	if fromV1alpha1 {
		errs = forV1alpha1(errs, object.Name)
	}
	switch {
	case len(errs) > 0:
		return nil, apierrors.NewInvalid(v1alpha2.GroupVersion.WithKind("NginxOperator").GroupKind(), object.Name, errs)
	case fromV1alpha1:
		return nil, nil
	default:
		return append(validation.Warnings(&object.Spec, old.Status.Certificates), warnings...), nil
	}
}

func isV1alpha1(request admission.Request) bool {
	return request.RequestKind != nil && request.RequestKind.Version == v1alpha1.GroupVersion.Version
}

// forV1alpha1 tells a client of v1alpha1 what is wrong in the words of its version, and where it has none, how to get at
// the field.
func forV1alpha1(errs field.ErrorList, name string) field.ErrorList {
	out := make(field.ErrorList, 0, len(errs))
	for _, err := range errs {
		told := *err
		told.Detail = strings.ReplaceAll(told.Detail, "spec.ports[0].port", "spec.port")
		switch told.Field {
		case "spec.ports[0].port":
			told.Field = "spec.port"
		case "spec.replicas", "spec.forceRedeploy":
		default:
			told.Detail += fmt.Sprintf(" (a field of v1alpha2; kubectl edit nginxoperators.v1alpha2.%s %s changes it)",
				v1alpha2.GroupVersion.Group, name)
		}
		out = append(out, &told)
	}
	return out
}
