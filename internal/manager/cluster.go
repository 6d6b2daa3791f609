package manager

import (
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// AddCluster gives a controller a cache of its own beside the manager's, for a kind that others of the manager's
// controllers narrow in another way, and a client that reads from it with read-your-writes consistency. Objects of that kind
// have to be written with this client as well: the manager's would fill the manager's cache with them. It starts and ends with
// the manager, before the controllers. The options need neither scheme nor HTTP client.
func AddCluster(mgr manager.Manager, options cache.Options) (cluster.Cluster, error) {
	out, err := cluster.New(mgr.GetConfig(), func(o *cluster.Options) {
		o.Scheme = mgr.GetScheme()
		o.HTTPClient = mgr.GetHTTPClient()
		o.MapperProvider = func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return mgr.GetRESTMapper(), nil }
		o.Cache = options
		o.Client.Cache = &client.CacheOptions{EnableReadYourWritesConsistency: ptr.To(true)}
	})
	if err != nil {
		return nil, fmt.Errorf("failed to make a cache: %w", err)
	}
	if err := mgr.Add(out); err != nil {
		return nil, fmt.Errorf("failed to add a cache: %w", err)
	}
	return out, nil
}
