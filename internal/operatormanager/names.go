package operatormanager

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// Filled returns a reader of the NginxOperators in the cache. A list starts their informer if no
// controller has started it yet, and waits until it has all objects. Only a leader may list,
// because a standby has no informers.
func Filled(objects cache.Cache) client.Reader { return filled{objects} }

type filled struct{ cache.Cache }

// List implements client.Reader.
func (f filled) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if _, err := f.GetInformer(ctx, &v1alpha2.NginxOperator{}); err != nil {
		return fmt.Errorf("failed to watch NginxOperators: %w", err)
	}
	return f.Cache.List(ctx, list, options...)
}
