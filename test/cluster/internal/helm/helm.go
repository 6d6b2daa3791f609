// Package helm renders charts.
package helm

import (
	"context"
	"fmt"
	"os"
	"os/exec"

	"github.com/example/nginx-operator/test/cluster/internal/host"
	"github.com/example/nginx-operator/test/cluster/internal/layout"
	"github.com/example/nginx-operator/test/cluster/internal/tools"
)

// Template renders a chart directory for a release name, a namespace, and the cluster's version of
// Kubernetes. Each value is KEY=VALUE, as for --set.
func Template(ctx context.Context, l layout.Layout, release, namespace, chart string, values ...string) ([]byte, error) {
	version, err := tools.Kubernetes.Version(l)
	if err != nil {
		return nil, err
	}
	args := []string{"template", release, chart, "--namespace", namespace, "--kube-version", version}
	for _, value := range values {
		args = append(args, "--set", value)
	}
	cmd := exec.CommandContext(ctx, l.Bin("helm"), args...)
	// Keep helm out of the user's own helm directories.
	cmd.Env = append(os.Environ(), "HELM_CACHE_HOME="+l.State("helm"), "HELM_CONFIG_HOME="+l.State("helm"), "HELM_DATA_HOME="+l.State("helm"))
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("failed to render the chart of %s: %w", release, host.CommandError(err))
	}
	return out, nil
}
