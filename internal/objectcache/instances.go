package objectcache

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/cached"
	"github.com/example/nginx-operator/pkg/access"
)

// Instances reads all NginxOperators of a leader's cache, some as parts. A standby has none.
type Instances struct {
	objects     cache.Cache
	permissions *access.Namespaces
	synced      atomic.Bool
}

// NewInstances returns the NginxOperators of a cache. permissions can be nil.
func NewInstances(objects cache.Cache, permissions *access.Namespaces) *Instances {
	return &Instances{objects: objects, permissions: permissions}
}

// Start implements manager.Runnable. The manager calls it after the election. It starts the
// informer, and waits until the cache has all objects.
func (i *Instances) Start(ctx context.Context) error {
	if _, err := i.objects.GetInformer(ctx, &v1alpha2.NginxOperator{}); err != nil {
		return fmt.Errorf("failed to watch NginxOperators: %w", err)
	}
	i.synced.Store(true)
	return nil
}

// List returns all NginxOperators, or false without them. The caller must not change them.
func (i *Instances) List(ctx context.Context) ([]v1alpha2.NginxOperator, bool) {
	if !i.synced.Load() {
		return nil, false
	}

	list := &v1alpha2.NginxOperatorList{}
	err := i.objects.List(ctx, list, client.UnsafeDisableDeepCopy)
	return list.Items, err == nil
}

// Waiting returns the number of NginxOperators that wait for a reconcile.
func (i *Instances) Waiting() int {
	waiting := 0
	instances, _ := i.List(context.Background())
	for index := range instances {
		if cached.StateOf(&instances[index]).Waiting {
			waiting++
		}
	}

	return waiting
}

// Names returns the names of all NginxOperators except those in namespaces without permissions,
// which are not reconciled. Only a leader may call it. It waits until the cache has all objects.
func (i *Instances) Names(ctx context.Context) ([]types.NamespacedName, error) {
	if err := i.Start(ctx); err != nil {
		return nil, err
	}

	instances, complete := i.List(ctx)
	if !complete {
		return nil, errors.New("the cache does not have all NginxOperators yet")
	}

	var names []types.NamespacedName
	for index := range instances {
		if name := client.ObjectKeyFromObject(&instances[index]); i.permissions.Usable(name.Namespace) {
			names = append(names, name)
		}
	}

	return names, nil
}
