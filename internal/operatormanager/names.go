package operatormanager

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/access"
	"github.com/example/nginx-operator/internal/census"
)

// Names returns a function that returns the names of all NginxOperators in the cache. It starts their
// informer if no controller has started it yet, and waits until the census of the cache has all
// objects. It omits the namespaces without permissions, whose objects are not reconciled. Only a leader
// may call it, because a standby has no informers.
func Names(objects cache.Cache, all *census.Census, permissions *access.Namespaces) func(context.Context) ([]types.NamespacedName, error) {
	return func(ctx context.Context) ([]types.NamespacedName, error) {
		if _, err := objects.GetInformer(ctx, &v1alpha2.NginxOperator{}); err != nil {
			return nil, fmt.Errorf("failed to watch NginxOperators: %w", err)
		}
		if !all.Wait(ctx) {
			return nil, errors.New("the cache does not have all NginxOperators yet")
		}
		usable := map[string]bool{}
		return slices.DeleteFunc(all.Names(), func(name types.NamespacedName) bool {
			if _, known := usable[name.Namespace]; !known {
				usable[name.Namespace] = permissions.Usable(name.Namespace)
			}
			return !usable[name.Namespace]
		}), nil
	}
}
