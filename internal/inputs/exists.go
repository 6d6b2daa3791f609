package inputs

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/health"
	"github.com/example/nginx-operator/pkg/reference"
)

// Exists reports whether an object or key that the kubelet reported as missing exists by now.
func (r Resolver) Exists(ctx context.Context, object *v1alpha2.NginxOperator, of health.Missing) (bool, error) {
	var has, found bool
	var err error
	if of.Kind == "secret" {
		source := named[corev1.Secret](object, of.Name)
		has, found, err = reference.Derive(ctx, r.Secrets, "key "+of.Key, source, func() bool {
			_, ok := source.Data[of.Key]
			return ok || of.Key == ""
		})
	} else {
		source := named[corev1.ConfigMap](object, of.Name)
		has, found, err = reference.Derive(ctx, r.ConfigMaps, "key "+of.Key, source, func() bool {
			_, text := source.Data[of.Key]
			_, binary := source.BinaryData[of.Key]
			return text || binary || of.Key == ""
		})
	}
	return found && has, err
}

// IsMended reports whether a revision failed because of a missing object that exists by now. The
// revision is retried then.
func (r Resolver) IsMended(ctx context.Context, object *v1alpha2.NginxOperator, failed *v1alpha2.FailedRevision) (bool, error) {
	if failed == nil || failed.Reason != v1alpha2.ReasonReferenceNotFound {
		return false, nil
	}
	of, ok := health.MissingReference(failed.Message)
	if !ok {
		return false, nil
	}
	return r.Exists(ctx, object, of)
}
