package validation

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/api/v1alpha2"
)

func TestAutoscaling(t *testing.T) {
	for spec, want := range map[string]string{
		"null":                             "",
		"{maxReplicas: 3}":                 "",
		"{minReplicas: 3, maxReplicas: 3}": "",
		"{maxReplicas: 3}, resources: {}":  "spec.resources.requests[cpu]: Required value: spec.autoscaling.targetCPU",
		"{maxReplicas: 3}, resources: {limits: {cpu: 1}}":                                                "",
		"{maxReplicas: 3}, resources: {requests: {cpu: 0}, limits: {cpu: 1}}":                            "spec.resources.requests[cpu]",
		"{maxReplicas: 3}, resources: {requests: {memory: 1Mi}}":                                         "spec.resources.requests[cpu]",
		"{maxReplicas: 3, targetMemoryUtilizationPercentage: 80}, resources: {requests: {memory: 1Mi}}":  "",
		"{maxReplicas: 3, targetMemoryUtilizationPercentage: 80}, resources: {requests: {cpu: 1}}":       "spec.resources.requests[memory]",
		"{maxReplicas: 3, targetCPUUtilizationPercentage: 80}, resources: {requests: {cpu: 1e-1000000}}": "spec.resources.requests[cpu]",
	} {
		declared := &v1alpha2.NginxOperatorSpec{}
		if err := yaml.UnmarshalStrict([]byte("{autoscaling: "+spec+"}"), declared); err != nil {
			t.Fatal(err)
		}
		errs := Spec(declared, field.NewPath("spec"))
		if (len(errs) > 0) != (want != "") || want != "" && (len(errs) != 1 || !strings.Contains(errs[0].Error(), want)) {
			t.Errorf("%s: want %q, got %v", spec, want, errs)
		}
	}
}
