package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// PrometheusOperator is a running Prometheus Operator.
type PrometheusOperator struct {
	*Process
	// Version is its version, without a v.
	Version string
	// CRDs are the CustomResourceDefinitions of this version.
	CRDs   []*apiextensionsv1.CustomResourceDefinition
	binary string
}

// NewPrometheusOperator returns the Prometheus Operator of a tool module, which is the directory of
// its go.mod. It is not started yet.
func NewPrometheusOperator(ctx context.Context, binary, module string) (*PrometheusOperator, error) {
	const path = "github.com/prometheus-operator/prometheus-operator"
	list, err := output(ctx, "go", "-C", module, "list", "-m", "-f", "{{.Version}} {{.Dir}}", path)
	if err != nil {
		return nil, err
	}
	version, dir, _ := strings.Cut(strings.TrimSpace(string(list)), " ")
	p := &PrometheusOperator{Version: strings.TrimPrefix(version, "v"), binary: binary}
	files, err := filepath.Glob(filepath.Join(dir, "example", "prometheus-operator-crd", "*.yaml"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("failed to find the CustomResourceDefinitions of the Prometheus Operator in %q: %w", dir, err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file) // #nosec G304 -- a file of the module cache
		if err != nil {
			return nil, err
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(raw, crd); err != nil {
			return nil, fmt.Errorf("failed to decode %s: %w", file, err)
		}
		p.CRDs = append(p.CRDs, crd)
	}
	return p, nil
}

// Start starts the Prometheus Operator with the permissions of config, which has a client
// certificate, and waits until it is healthy. Its CRDs must exist. Its log and certificates are in
// dir.
func (p *PrometheusOperator) Start(ctx context.Context, config *rest.Config, dir string) error {
	address, err := FreeAddress()
	if err != nil {
		return err
	}
	args := []string{"--apiserver=" + config.Host, "--web.listen-address=" + address}
	for flag, data := range map[string][]byte{"ca": config.CAData, "cert": config.CertData, "key": config.KeyData} {
		file := filepath.Join(dir, flag+".pem")
		args = append(args, "--"+flag+"-file="+file)
		err = errors.Join(err, os.WriteFile(file, data, 0o600))
	}
	if err != nil {
		return fmt.Errorf("failed to write the certificates: %w", err)
	}
	cmd := exec.Command(p.binary, args...) //nolint:gosec // a tool of this repository
	p.Process, err = startServer(ctx, cmd, dir, "prometheus-operator", "http://"+address+"/healthz")
	return err
}
