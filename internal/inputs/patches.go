package inputs

import (
	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/failure"
	"github.com/example/nginx-operator/internal/operand"
)

// patchBlockers returns the errors in the patches of an object as blockers.
func patchBlockers(object *v1alpha2.NginxOperator, in operand.Inputs) []failure.Failure {
	var out []failure.Failure
	for _, problem := range operand.PatchErrors(object, in) {
		out = append(out, failure.Failure{Reason: v1alpha2.ReasonInvalidConfiguration, Message: problem.Error()})
	}
	return out
}
