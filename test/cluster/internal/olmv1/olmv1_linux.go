package olmv1

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/example/nginx-operator/test/cluster/internal/host"
	"github.com/example/nginx-operator/test/cluster/internal/layout"
	"github.com/example/nginx-operator/test/cluster/internal/node"
	"github.com/example/nginx-operator/test/cluster/internal/tools"
)

// timeout bounds the installation of one part, and each wait in it.
const timeout = 5 * time.Minute

//go:embed cert-manager-probe.yaml
var certManagerProbe []byte

//go:embed olm-v1-probe.yaml
var olmV1Probe []byte

// part is a set of manifests that is installed in its own namespace.
type part struct {
	name, namespace string
	manifests       func(ctx context.Context, l layout.Layout) ([]byte, error)
	// probe has objects that the API server accepts once the part's CRDs are established and its
	// webhooks work.
	probe []byte
}

// parts are in installation order: cert-manager signs the certificates of OLM v1.
var parts = []part{
	{name: certManagerName, namespace: certManagerName, manifests: certManager, probe: certManagerProbe},
	{name: "OLM v1", namespace: "olmv1-system", manifests: olmV1, probe: olmV1Probe},
}

// Install installs cert-manager and OLM v1 and waits until they work.
func Install(ctx context.Context, n *node.Node, progress *host.Progress) error {
	for _, p := range parts {
		if err := p.install(ctx, n, progress); err != nil {
			return fmt.Errorf("failed to install %s (bin/cluster exec -- kubectl get pods -n %s): %w", p.name, p.namespace, err)
		}
	}
	return nil
}

// Ready checks once whether all parts work.
func Ready(ctx context.Context, n *node.Node) error {
	for _, p := range parts {
		if err := p.available(ctx, n, 0); err != nil {
			return err
		}
		if err := p.answers(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

func (p part) install(ctx context.Context, n *node.Node, progress *host.Progress) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	progress.Step("installing %s", p.name)
	manifests, err := p.manifests(ctx, n.Layout)
	if err != nil {
		return err
	}
	_, err = n.Run(ctx, bytes.NewReader(manifests), n.Bin("kubectl"), "apply", "--server-side", "--force-conflicts", "--filename", "-")
	if err != nil {
		return err
	}
	progress.Step("waiting for %s", p.name)
	if err := p.available(ctx, n, timeout); err != nil {
		return err
	}
	return host.Poll(ctx, timeout, 200*time.Millisecond, func(ctx context.Context) error { return p.answers(ctx, n) })
}

// available waits until all Deployments are available. If wait is 0, it checks once.
func (p part) available(ctx context.Context, n *node.Node, wait time.Duration) error {
	_, err := n.Run(ctx, nil, n.Bin("kubectl"), "wait", "--namespace", p.namespace, "--for=condition=Available", "--timeout="+wait.String(),
		"deployment", "--all")
	return err
}

// answers checks once whether the API server accepts the probe. The probe is a dry run.
func (p part) answers(ctx context.Context, n *node.Node) error {
	_, err := n.Run(ctx, bytes.NewReader(p.probe), n.Bin("kubectl"), "create", "--dry-run=server", "--filename", "-")
	return err
}

// certManager returns the objects of cert-manager.
func certManager(ctx context.Context, l layout.Layout) ([]byte, error) {
	source, err := tools.CertManager.Dir(ctx, l)
	if err != nil {
		return nil, err
	}
	return withCRDs(source)
}

// olmV1 returns the manifests in the module of OLM v1, without the catalogs of public operators,
// which are outside the cluster.
func olmV1(ctx context.Context, l layout.Layout) ([]byte, error) {
	version, err := tools.OLMv1.Version(l)
	if err != nil {
		return nil, err
	}
	source, err := tools.OLMv1.Dir(ctx, l)
	if err != nil {
		return nil, err
	}
	return patched(l.Bin("kubectl"), source, version)
}
