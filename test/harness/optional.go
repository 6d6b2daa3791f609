package harness

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// HTTPRouteCRD, PodMonitorCRD, and PrometheusRuleCRD are the CRDs of children that not every
// cluster supports. ServiceMonitorCRD is the CRD of the ServiceMonitor in config/monitoring.
const (
	HTTPRouteCRD      = "httproutes.gateway.networking.k8s.io"
	PodMonitorCRD     = "podmonitors.monitoring.coreos.com"
	PrometheusRuleCRD = "prometheusrules.monitoring.coreos.com"
	ServiceMonitorCRD = "servicemonitors.monitoring.coreos.com"
)

// OptionalCRDs returns these CRDs by name, from the modules that define the operator's Go types.
// The HTTPRoute CRD is a file in its module. controller-gen, which must be in directory, generates
// the others from their Go types.
func OptionalCRDs(ctx context.Context, directory string) (map[string]*apiextensionsv1.CustomResourceDefinition, error) {
	dir, err := output(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/gateway-api")
	if err != nil {
		return nil, err
	}
	file := filepath.Join(strings.TrimSpace(string(dir)), "config", "crd", "standard", "gateway.networking.k8s.io_httproutes.yaml")
	route, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("failed to read the Gateway API: %w", err)
	}
	monitoring, err := output(ctx, filepath.Join(directory, "controller-gen"), "crd:maxDescLen=0", "output:crd:stdout",
		"paths=github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1")
	if err != nil {
		return nil, err
	}
	out := map[string]*apiextensionsv1.CustomResourceDefinition{}
	separator := []byte("\n---\n")
	for document := range bytes.SplitSeq(slices.Concat(route, separator, monitoring), separator) {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(document, crd); err != nil {
			return nil, fmt.Errorf("failed to decode a CustomResourceDefinition: %w", err)
		}
		if slices.Contains([]string{HTTPRouteCRD, PodMonitorCRD, PrometheusRuleCRD, ServiceMonitorCRD}, crd.Name) {
			out[crd.Name] = crd
		}
	}
	return out, nil
}

func output(ctx context.Context, name string, args ...string) ([]byte, error) {
	var stderr bytes.Buffer
	command := exec.CommandContext(ctx, name, args...)
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("failed to run %s: %w\n%s", name, err, stderr.Bytes())
	}
	return out, nil
}

// InstallCRD creates a CRD and returns when it is established.
func InstallCRD(ctx context.Context, admin client.Client, crd *apiextensionsv1.CustomResourceDefinition) error {
	if err := admin.Create(ctx, crd.DeepCopy()); err != nil {
		return fmt.Errorf("failed to install %s: %w", crd.Name, err)
	}
	return Eventually(ctx, 50*time.Millisecond, func(ctx context.Context) error {
		live := &apiextensionsv1.CustomResourceDefinition{}
		err := admin.Get(ctx, client.ObjectKeyFromObject(crd), live)
		if err == nil && !apihelpers.IsCRDConditionTrue(live, apiextensionsv1.Established) {
			err = fmt.Errorf("%s is not established", crd.Name)
		}
		return err
	})
}

// RemoveCRD deletes a CRD with all of its objects and returns when it is gone.
func RemoveCRD(ctx context.Context, admin client.Client, name string) error {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Name = name
	if err := admin.Delete(ctx, crd); err != nil {
		return fmt.Errorf("failed to remove %s: %w", name, err)
	}
	return Eventually(ctx, 50*time.Millisecond, func(ctx context.Context) error {
		err := admin.Get(ctx, client.ObjectKeyFromObject(crd), crd)
		if err == nil {
			err = fmt.Errorf("%s still exists", name)
		}
		return client.IgnoreNotFound(err)
	})
}
