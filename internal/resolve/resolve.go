// Package resolve reads and checks the spec of an NginxOperator and the ConfigMaps and Secrets that
// it references. The result is the inputs of the children, or the reasons why the spec cannot be
// applied.
package resolve

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/failure"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/validation"
	"github.com/example/nginx-operator/internal/wellknown"
	"github.com/example/nginx-operator/pkg/reference"
)

// Resolver reads and checks the objects that specs reference. It is a value. The trackers have all
// state.
type Resolver struct {
	operand.Release
	// ConfigMaps and Secrets read the referenced objects, and remember conclusions until the
	// objects change.
	ConfigMaps, Secrets *reference.Tracker
}

// resolution is the result of the steps of Resolve.
type resolution struct {
	in       operand.Inputs
	blockers []failure.Failure
}

func (r *resolution) block(blockers ...failure.Failure) { r.blockers = append(r.blockers, blockers...) }

// Resolve checks the spec and the objects that it references. refused are the refused values of the
// spec (operand.Release.Refusals) that are not in effect. Resolve returns the inputs of the
// children, and the reasons why the spec cannot be applied, in the order of the spec's fields. If
// there is such a reason, the inputs are incomplete. It returns an error if an object cannot be
// read.
func (r Resolver) Resolve(
	ctx context.Context, object *v1alpha2.NginxOperator, refused []failure.Failure,
) (operand.Inputs, []failure.Failure, error) {
	to := &resolution{r.Inputs(object), specBlockers(object, refused)}
	for _, step := range []func(context.Context, *v1alpha2.NginxOperator, *resolution) error{
		r.resolveConfig, r.resolveContent, r.resolveFiles, r.resolveSecretFiles, r.checkIncluded, r.resolveCertificates,
	} {
		if err := step(ctx, object, to); err != nil {
			return to.in, nil, err
		}
	}

	if len(to.blockers) == 0 {
		to.blockers = invalid(operand.PatchErrors(object, to.in))
	}
	return to.in, to.blockers, nil
}

// SecretsOf returns the current content of the Secrets that the Pods of a template mount, as
// inputs, and the reasons why a Secret cannot be used.
func (r Resolver) SecretsOf(
	ctx context.Context, object *v1alpha2.NginxOperator, template *corev1.PodTemplateSpec,
) (operand.Inputs, []failure.Failure, error) {
	mounted := &v1alpha2.NginxOperator{ObjectMeta: object.ObjectMeta, Spec: operand.SecretsOf(&template.Spec)}
	to := &resolution{}
	err := r.resolveCertificates(ctx, mounted, to)
	if err == nil {
		err = r.resolveSecretFiles(ctx, mounted, to)
	}
	return to.in, to.blockers, err
}

// specBlockers returns the errors in a spec that do not depend on references. A spec with refused
// values is not validated further.
func specBlockers(object *v1alpha2.NginxOperator, refused []failure.Failure) []failure.Failure {
	var blockers []failure.Failure
	if _, isDamaged := object.Annotations[wellknown.AnnotationV1alpha2Unreadable]; isDamaged {
		blockers = append(blockers, failure.Failure{
			Reason: v1alpha2.ReasonInvalidConfiguration,
			Message: fmt.Sprintf(
				"metadata.annotations[%s]: a write at v1alpha1 damaged the annotation with the v1alpha2 fields; some may be missing. "+
					"Complete the spec at v1alpha2, then remove this annotation", wellknown.AnnotationV1alpha2Unreadable),
		})
	}

	if len(refused) > 0 {
		return append(blockers, refused...)
	}
	return append(blockers, invalid(validation.Spec(&object.Spec, operand.SpecPath))...)
}

// invalid returns errors in a spec as blockers.
func invalid(errs field.ErrorList) []failure.Failure {
	var blockers []failure.Failure
	for _, err := range errs {
		blockers = append(blockers, failure.Failure{Reason: v1alpha2.ReasonInvalidConfiguration, Message: err.Error()})
	}
	return blockers
}

// notFound returns the blocker for a missing object.
func notFound(path *field.Path, kind, name string) failure.Failure {
	return failure.Failure{
		Reason:  v1alpha2.ReasonReferenceNotFound,
		Message: fmt.Sprintf("%s: %s %q not found in this namespace; create it, or reference another", path, kind, name),
	}
}

// noKey returns the blocker for an object without a key.
func noKey(path *field.Path, kind, name, key, where string) failure.Failure {
	return failure.Failure{
		Reason:  v1alpha2.ReasonReferenceNotFound,
		Message: fmt.Sprintf("%s: %s %q has no key %q%s; add it, or reference another key", path, kind, name, key, where),
	}
}

// referenced returns the metadata of an object that an NginxOperator references.
func referenced(object *v1alpha2.NginxOperator, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: object.Namespace, Name: name}
}
