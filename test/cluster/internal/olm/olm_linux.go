// Package olm installs the Operator Lifecycle Manager: the CRDs in its module, and the rendered
// chart.
package olm

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/example/nginx-operator/test/cluster/internal/host"
	"github.com/example/nginx-operator/test/cluster/internal/node"
	"github.com/example/nginx-operator/test/cluster/internal/tools"
)

const (
	namespace = "olm"
	// timeout bounds the installation.
	timeout = 5 * time.Minute
)

// manifests are the objects of OLM's chart except its CRDs, as a test renders them.
//
//go:embed olm.yaml
var manifests []byte

// Install installs OLM and waits until it works.
func Install(ctx context.Context, n *node.Node, progress *host.Progress) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	source, err := tools.OLM.Dir(ctx, n.Layout)
	if err != nil {
		return err
	}
	kubectl := func(stdin io.Reader, args ...string) error {
		_, err := n.Run(ctx, stdin, n.Bin("kubectl"), args...)
		return err
	}
	progress.Step("installing OLM: CRDs")
	crds := filepath.Join(source, "deploy", "chart", "crds")
	if err := kubectl(nil, "apply", "--server-side", "--force-conflicts", "--filename", crds); err != nil {
		return err
	}
	if err := kubectl(nil, "wait", "--for=condition=Established", "--timeout=60s", "--filename", crds); err != nil {
		return err
	}
	progress.Step("installing OLM: operators")
	// The API server serves a kind a moment after its CRD is established.
	err = host.Poll(ctx, time.Minute, 200*time.Millisecond, func(context.Context) error {
		return kubectl(bytes.NewReader(manifests), "apply", "--server-side", "--force-conflicts", "--filename", "-")
	})
	if err != nil {
		return fmt.Errorf("failed to install OLM: %w", err)
	}
	progress.Step("waiting for OLM")
	if err := host.Poll(ctx, timeout, 200*time.Millisecond, func(ctx context.Context) error { return Ready(ctx, n) }); err != nil {
		return fmt.Errorf("failed to wait for OLM (bin/cluster exec -- kubectl get pods -n %s): %w", namespace, err)
	}
	return nil
}

// Ready checks once whether OLM has installed its own aggregated API, the last step of its start.
func Ready(ctx context.Context, n *node.Node) error {
	var csv struct {
		Status struct{ Phase, Message string }
	}
	path := "/apis/operators.coreos.com/v1alpha1/namespaces/" + namespace + "/clusterserviceversions/packageserver"
	if err := n.Get(ctx, path, &csv); err != nil {
		return err
	}
	if csv.Status.Phase != "Succeeded" {
		return fmt.Errorf("packageserver is %q: %s", csv.Status.Phase, csv.Status.Message)
	}
	return nil
}
