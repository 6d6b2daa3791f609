package status

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// outdated returns the condition for stored values that this release refuses, or nil if there are
// none.
func outdated(stored field.ErrorList) *metav1.Condition {
	if len(stored) == 0 {
		return nil
	}
	var fields []string
	for _, problem := range stored {
		fields = append(fields, problem.Error())
	}
	out := condition(v1alpha2.ConditionOutdated, metav1.ConditionTrue, v1alpha2.ReasonValueRefused,
		"an older release accepted values that this release refuses in a new write; they stay in effect until you change them: "+
			strings.Join(fields, "; "))
	return &out
}
