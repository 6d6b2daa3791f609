package status

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/failure"
	"github.com/example/nginx-operator/internal/health"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/revision"
	"github.com/example/nginx-operator/internal/validation"
	"github.com/example/nginx-operator/pkg/apply"
	"github.com/example/nginx-operator/pkg/denied"
)

// WriteFailure returns why a child of a spec could not be written, or nil if there is no error. The
// reason is RolloutInProgress if the write only has to wait.
func WriteFailure(err error, spec *v1alpha2.NginxOperatorSpec) *failure.Failure {
	if err == nil {
		return nil
	}

	result := &failure.Failure{Reason: v1alpha2.ReasonAPIError, Message: err.Error()}
	var refused operand.NotPatched
	var lost revision.Lost
	faults, policy := validation.Verdict(err, spec, operand.SpecPath), denied.By(err)
	forged, taken := apply.IsForged(err), apply.IsNotOurs(err)
	switch {
	case len(faults) > 0:
		result.Reason, result.Passes = v1alpha2.ReasonInvalidConfiguration, isNodePortTaken(faults)
		result.Message = faults.ToAggregate().Error()
		if result.Passes {
			result.Message += ". The operator retries until the port is free. To continue now, set another node port"
		}
	case errors.As(err, &refused):
		result.Reason, result.Message = v1alpha2.ReasonInvalidConfiguration, refused.Error()
	case forged != nil:
		result.Reason = v1alpha2.ReasonForgedContent
		result.Message = forged.Error() + ". The operator replaces it, and all Pods, because they may have mounted it"
	case errors.As(err, &lost):
		result.Reason, result.Message = v1alpha2.ReasonReferenceNotFound, lost.Error()
	case policy != "" && !InTerminatingNamespace(err):
		result.Reason = v1alpha2.ReasonForbidden
		result.Message = fmt.Sprintf("%s. Change the spec to comply with %s, or change its rules", err, policy)
	case taken != nil && taken.Predecessor:
		result.Reason = v1alpha2.ReasonRolloutInProgress
	case taken != nil:
		result.Reason = v1alpha2.ReasonNameConflict
	case InTerminatingNamespace(err):
		result.Reason = v1alpha2.ReasonNamespaceTerminating
	case apierrors.IsForbidden(err):
		result.Reason = health.RefusalReason(err.Error())
		if result.Reason == v1alpha2.ReasonQuotaExceeded {
			result.Message += health.QuotaRemedy
		}
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		result.Reason = v1alpha2.ReasonInvalidChild
	}

	return result
}

// ContestedFailure returns the failure for a child that another client keeps changing.
func ContestedFailure(contested apply.Contested) failure.Failure {
	client := "another client"
	if contested.Manager != "" {
		client = fmt.Sprintf("field manager %q", contested.Manager)
	}
	return failure.Failure{
		Reason: v1alpha2.ReasonChildContested,
		Message: fmt.Sprintf("%s keeps changing %s %q, and the operator reverts each change. "+
			"Stop that client, or declare its change in the spec",
			client, contested.Child.GetObjectKind().GroupVersionKind().Kind, contested.Child.GetName()),
	}
}

// InTerminatingNamespace reports whether the API server refused a child because its namespace is
// being deleted.
func InTerminatingNamespace(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// nodePortTaken ends the API server's message about a node port that may become free.
const nodePortTaken = "provided port is already allocated"

// isNodePortTaken reports whether all faults of a spec are node ports that other Services have.
func isNodePortTaken(faults field.ErrorList) bool {
	return !slices.ContainsFunc(faults, func(fault *field.Error) bool {
		return !strings.HasSuffix(fault.Detail, nodePortTaken)
	})
}
