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
	if faults := validation.Verdict(err, spec, operand.SpecPath); len(faults) > 0 {
		message, passes := faults.ToAggregate().Error(), isNodePortTaken(faults)
		if passes {
			message += "; the operator retries with back-off, or set another node port"
		}
		return &failure.Failure{Reason: v1alpha2.ReasonInvalidConfiguration, Message: message, Passes: passes}
	}
	if refused := (operand.NotPatched{}); errors.As(err, &refused) {
		return &failure.Failure{Reason: v1alpha2.ReasonInvalidConfiguration, Message: refused.Error()}
	}
	if forged := apply.IsForged(err); forged != nil {
		message := forged.Error() + ": replacing it, and all Pods, as they may have mounted it"
		return &failure.Failure{Reason: v1alpha2.ReasonForgedContent, Message: message}
	}
	if lost := (revision.Lost{}); errors.As(err, &lost) {
		return &failure.Failure{Reason: v1alpha2.ReasonReferenceNotFound, Message: lost.Error()}
	}
	if policy := denied.By(err); policy != "" && !InTerminatingNamespace(err) {
		return &failure.Failure{
			Reason:  v1alpha2.ReasonForbidden,
			Message: fmt.Sprintf("%s. Change the spec to comply with %s, or change its rules", err, policy),
		}
	}
	reason := v1alpha2.ReasonAPIError
	found := apply.IsNotOurs(err)
	switch {
	case found != nil && found.Predecessor:
		reason = v1alpha2.ReasonRolloutInProgress
	case found != nil:
		reason = v1alpha2.ReasonNameConflict
	case InTerminatingNamespace(err):
		reason = v1alpha2.ReasonNamespaceTerminating
	case apierrors.IsForbidden(err):
		reason = health.RefusalReason(err.Error())
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		reason = v1alpha2.ReasonInvalidChild
	}
	return &failure.Failure{Reason: reason, Message: err.Error()}
}

// ContestedFailure returns the failure for a child that another client keeps changing.
func ContestedFailure(contested apply.Contested) failure.Failure {
	client := "another client"
	if contested.Manager != "" {
		client = fmt.Sprintf("field manager %q", contested.Manager)
	}
	return failure.Failure{
		Reason: v1alpha2.ReasonChildContested,
		Message: fmt.Sprintf("%s keeps changing %s %q, and the operator restores it each time. "+
			"Stop that client, or declare its change in the spec",
			client, contested.Child.GetObjectKind().GroupVersionKind().Kind, contested.Child.GetName()),
	}
}

// InTerminatingNamespace reports whether the API server refused a child because its namespace is
// being deleted.
func InTerminatingNamespace(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// nodePortTaken is the end of the API server's message about a node port of another Service
// (pkg/registry/core/service/portallocator). The port may become free, for example when the other
// Service is deleted.
const nodePortTaken = "provided port is already allocated"

// isNodePortTaken reports whether the faults of a spec are only node ports that other Services
// have.
func isNodePortTaken(faults field.ErrorList) bool {
	return len(faults) > 0 && !slices.ContainsFunc(faults, func(fault *field.Error) bool {
		return !strings.HasSuffix(fault.Detail, nodePortTaken)
	})
}
