package migrate

import (
	"cmp"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// From returns the replacement of each workload in the manifests. name is the name of the only
// replacement, or "" for the name of the workload with a suffix.
func From(manifests []*unstructured.Unstructured, name string) ([]Result, error) {
	var results []Result
	for _, manifest := range manifests {
		var convert func(*Result, *unstructured.Unstructured) error
		switch manifest.GroupVersionKind().GroupKind().String() {
		case "Deployment.apps":
			convert = (*Result).fromDeployment
		case "Nginx.nginx.tsuru.io":
			convert = (*Result).fromTsuru
		default:
			continue
		}

		if name != "" && len(results) > 0 {
			return nil, errors.New("--name requires manifests with exactly one workload. Remove --name, or convert one workload at a time")
		}

		from := manifest.GetKind() + " " + manifest.GetName()
		result := newResult(from, manifest.GetNamespace(), cmp.Or(name, manifest.GetName()+suffix), manifests)
		if err := convert(&result, manifest); err != nil {
			return nil, fmt.Errorf("%s: %w", from, err)
		}

		result.finish()
		results = append(results, result)
	}

	if len(results) == 0 {
		return nil, errors.New("the manifests have neither a Deployment (apps/v1) nor an Nginx (nginx.tsuru.io/v1alpha1)")
	}
	return results, nil
}
