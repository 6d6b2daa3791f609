package cluster

import (
	"context"
	"fmt"
	"os"

	"github.com/example/nginx-operator/test/cluster/internal/host"
	"github.com/example/nginx-operator/test/cluster/internal/layout"
	"github.com/example/nginx-operator/test/cluster/internal/node"
	"github.com/example/nginx-operator/test/cluster/internal/olm"
	"github.com/example/nginx-operator/test/cluster/internal/olmv1"
)

// objects are the objects of the parts that have some. ready checks once whether they work.
var objects = map[layout.Part]struct {
	install func(context.Context, *node.Node, *host.Progress) error
	ready   func(context.Context, *node.Node) error
}{
	layout.Metrics: {installMetrics, metricsReady},
	layout.OLM:     {olm.Install, olm.Ready},
	layout.OLMv1:   {olmv1.Install, olmv1.Ready},
}

// install installs the objects of a part that do not work. Its components and images are there.
func (c *Cluster) install(ctx context.Context, part layout.Part) error {
	if o, ok := objects[part]; ok && o.ready(ctx, c.Node) != nil {
		if err := o.install(ctx, c.Node, c.Progress); err != nil {
			return err
		}
	}
	return host.WriteFile(c.Node.Started(part), nil, 0o644)
}

// hasStarted reports whether the cluster has a part.
func (c *Cluster) hasStarted(part layout.Part) bool {
	_, err := os.Stat(c.Node.Started(part))
	return err == nil
}

// works reports whether the cluster has a part, and its objects work.
func (c *Cluster) works(ctx context.Context, part layout.Part) bool {
	o, ok := objects[part]
	return c.hasStarted(part) && (!ok || o.ready(ctx, c.Node) == nil)
}

// installMetrics registers metrics-server with the API server, and waits until the API works.
func installMetrics(ctx context.Context, n *node.Node, progress *host.Progress) error {
	progress.Step("waiting for the metrics API")
	_, err := n.Run(ctx, nil, n.Bin("kubectl"), "apply", "--server-side", "--filename", n.Config("metrics-server.yaml"))
	if err != nil {
		return err
	}
	err = host.Poll(ctx, startTimeout, pollInterval, func(ctx context.Context) error { return metricsReady(ctx, n) })
	if err != nil {
		return fmt.Errorf("failed to wait for the metrics API: %w", err)
	}
	return nil
}

// metricsReady checks once whether the metrics API responds. Until it does, no namespace can be
// deleted.
func metricsReady(ctx context.Context, n *node.Node) error {
	return n.Get(ctx, "/apis/metrics.k8s.io/v1beta1/nodes", &struct{}{})
}
