package migrate

import (
	"cmp"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// converter converts a workload with the objects in the manifests that belong to it.
type converter func(out *Result, workload *unstructured.Unstructured, manifests []*unstructured.Unstructured) error

var converters = map[string]converter{"Deployment.apps": fromDeployment, "Nginx.nginx.tsuru.io": fromTsuru}

// From returns the replacement of each workload in the manifests. name is the name of the only
// replacement, or "" for the name of the workload with a suffix.
func From(manifests []*unstructured.Unstructured, name string) ([]Result, error) {
	var out []Result
	for _, manifest := range manifests {
		convert := converters[manifest.GroupVersionKind().GroupKind().String()]
		if convert == nil {
			continue
		}
		if name != "" && len(out) > 0 {
			return nil, errors.New("--name requires manifests with exactly one workload. Remove --name, or convert one workload at a time")
		}
		result := newResult(manifest, cmp.Or(name, manifest.GetName()+suffix))
		if err := convert(&result, manifest, manifests); err != nil {
			return nil, fmt.Errorf("%s %s: %w", manifest.GetKind(), manifest.GetName(), err)
		}
		result.finish(manifests)
		out = append(out, result)
	}
	if len(out) == 0 {
		return nil, errors.New("the manifests have neither a Deployment (apps/v1) nor an Nginx (nginx.tsuru.io/v1alpha1)")
	}
	return out, nil
}
