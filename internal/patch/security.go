package patch

import (
	"fmt"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// standard evaluates Pods as the API server does.
var standard = sync.OnceValues(func() (policy.Evaluator, error) { return policy.NewEvaluator(policy.DefaultChecks(), nil) })

// lessSecure returns the rules of the Pod Security Standard "restricted" that a patched Pod
// violates and the original Pod does not, in the words of the API server. No namespace can enforce
// a stricter level, so a Pod that violates none of them is admitted everywhere.
func lessSecure(before, after client.Object) []string {
	was, isDeployment := before.(*appsv1.Deployment)
	if !isDeployment {
		return nil
	}

	evaluator, err := standard()
	if err != nil {
		return []string{"failed to create the checks of Pod Security: " + err.Error()}
	}

	evaluate := func(deployment *appsv1.Deployment) []policy.CheckResult {
		template := deployment.Spec.Template
		// The checks that these fields relax depend on the version of the API server and on its
		// nodes.
		template.Spec.HostUsers, template.Spec.OS = nil, nil
		level := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
		return evaluator.EvaluatePod(level, &template.ObjectMeta, &template.Spec)
	}

	original, patched := evaluate(was), evaluate(after.(*appsv1.Deployment))
	var faults []string
	for i, check := range patched {
		if !check.Allowed && (i >= len(original) || original[i].Allowed) {
			faults = append(faults, fmt.Sprintf("violates PodSecurity \"restricted:latest\": %s (%s)", check.ForbiddenReason, check.ForbiddenDetail))
		}
	}

	return faults
}
