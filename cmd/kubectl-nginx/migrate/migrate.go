package migrate

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/example/nginx-operator/internal/validation"
)

// From returns the replacement of each workload in the manifests.
func From(manifests []*unstructured.Unstructured) ([]Result, error) {
	var out []Result
	for _, manifest := range manifests {
		var one Result
		var err error
		switch kind := manifest.GroupVersionKind().GroupKind().String(); kind {
		case "Deployment.apps":
			one, err = fromDeployment(manifest, manifests)
		case "Nginx.nginx.tsuru.io":
			one, err = fromTsuru(manifest)
		default:
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", manifest.GetKind(), manifest.GetName(), err)
		}
		for _, problem := range validation.Spec(&one.Object.Spec, field.NewPath("spec")) {
			one.Lost = append(one.Lost, "the result is not valid yet, correct it: "+problem.Error())
		}
		out = append(out, one)
	}
	if len(out) == 0 {
		return nil, errors.New("the manifests have neither a Deployment (apps/v1) nor an Nginx (nginx.tsuru.io/v1alpha1)")
	}
	return out, nil
}
