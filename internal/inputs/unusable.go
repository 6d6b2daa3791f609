package inputs

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/cached"
	"github.com/example/nginx-operator/internal/failure"
	"github.com/example/nginx-operator/internal/health"
	"github.com/example/nginx-operator/pkg/reference"
)

// Unusable is the reason why no Pod of a template can start.
type Unusable struct {
	failure.Failure
	// Object has the kind and the name of the missing or unusable object, as in messages.
	Object string
}

// Unusable returns the objects that the Pods of a template need, and that do not exist or that
// nginx cannot use. It accepts a whole template and the form in the cache.
func (r Resolver) Unusable(ctx context.Context, object *v1alpha2.NginxOperator, template *corev1.PodTemplateSpec) ([]Unusable, error) {
	needed := cached.ReferencesOf(&template.Spec)
	var out []Unusable
	add := func(kind, name, reason, problem string) {
		named := fmt.Sprintf("%s %q", kind, name)
		message := fmt.Sprintf("the running Pods need %s, which %s", named, problem)
		out = append(out, Unusable{Failure: failure.Failure{Reason: reason, Message: message}, Object: named})
	}
	for _, name := range needed.Certificates {
		source := named[corev1.Secret](object, name)
		found, exists, err := reference.Derive(ctx, r.Secrets, "certificate", source, func() certificate { return certificateOf(source) })
		switch {
		case err != nil:
			return nil, err
		case !exists:
			add("Secret", name, v1alpha2.ReasonReferenceNotFound, missingProblem)
		case found.problem != "":
			add("Secret", name, found.reason, found.problem)
		}
	}

	for _, of := range []struct {
		kind, name string
		names      []string
	}{{"Secret", "secret", needed.Secrets}, {"ConfigMap", "configmap", needed.ConfigMaps}} {
		for _, name := range of.names {
			exists, err := r.Exists(ctx, object, health.Missing{Kind: of.name, Name: name})
			if err != nil {
				return nil, err
			}
			if !exists {
				add(of.kind, name, v1alpha2.ReasonReferenceNotFound, missingProblem)
			}
		}
	}
	return out, nil
}

const missingProblem = "does not exist in this namespace: create it"
