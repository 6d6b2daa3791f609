package resolve

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/cached"
	"github.com/example/nginx-operator/internal/failure"
	"github.com/example/nginx-operator/internal/health"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/pkg/reference"
)

// Unusable is the reason why no Pod of a template can start.
type Unusable struct {
	failure.Failure
	// Object has the kind and the name of the missing or unusable object, as in messages.
	Object string
}

const missingProblem = "not found in this namespace; create it"

// Unusable returns the objects that the Pods of a template need, and that do not exist or that
// nginx cannot use. It accepts a whole template and the form in the cache.
func (r Resolver) Unusable(
	ctx context.Context, object *v1alpha2.NginxOperator, template *corev1.PodTemplateSpec,
) ([]Unusable, error) {
	var unusable []Unusable
	add := func(kind, name, reason, problem string) {
		named := fmt.Sprintf("%s %q", kind, name)
		message := fmt.Sprintf("running Pods cannot be replaced: %s %s", named, problem)
		unusable = append(unusable, Unusable{Failure: failure.Failure{Reason: reason, Message: message}, Object: named})
	}

	needed := cached.ReferencesOf(&template.Spec)
	for _, name := range needed.Certificates {
		conclusion, exists, err := r.certificate(ctx, object, name)
		switch {
		case err != nil:
			return nil, err
		case !exists:
			add("Secret", name, v1alpha2.ReasonReferenceNotFound, missingProblem)
		case conclusion.problem != "":
			add("Secret", name, conclusion.reason, conclusion.problem)
		}
	}

	for _, list := range []struct {
		kind, kubeletKind string
		names             []string
	}{{"Secret", "secret", needed.Secrets}, {"ConfigMap", "configmap", needed.ConfigMaps}} {
		for _, name := range list.names {
			exists, err := r.Exists(ctx, object, health.Missing{Kind: list.kubeletKind, Name: name})
			if err != nil {
				return nil, err
			}
			if !exists {
				add(list.kind, name, v1alpha2.ReasonReferenceNotFound, missingProblem)
			}
		}
	}

	return unusable, nil
}

// Exists reports whether an object or key that the kubelet reported as missing exists by now.
func (r Resolver) Exists(ctx context.Context, object *v1alpha2.NginxOperator, missing health.Missing) (bool, error) {
	var hasKey, exists bool
	var err error
	if missing.Kind == "secret" {
		source := &corev1.Secret{ObjectMeta: referenced(object, missing.Name)}
		hasKey, exists, err = reference.Derive(ctx, r.Secrets, "key "+missing.Key, source, func() bool {
			_, isThere := source.Data[missing.Key]
			return isThere || missing.Key == ""
		})
	} else {
		source := &corev1.ConfigMap{ObjectMeta: referenced(object, missing.Name)}
		hasKey, exists, err = reference.Derive(ctx, r.ConfigMaps, "key "+missing.Key, source, func() bool {
			_, isThere := operand.KeyOf(source, missing.Key)
			return isThere || missing.Key == ""
		})
	}

	return exists && hasKey, err
}

// IsMended reports whether a revision failed because of a missing object that exists by now. The
// revision is retried then.
func (r Resolver) IsMended(ctx context.Context, object *v1alpha2.NginxOperator, failed *v1alpha2.FailedRevision) (bool, error) {
	if failed == nil || failed.Reason != v1alpha2.ReasonReferenceNotFound {
		return false, nil
	}

	missing, isMissing := health.MissingReference(failed.Message)
	if !isMissing {
		return false, nil
	}
	return r.Exists(ctx, object, missing)
}
