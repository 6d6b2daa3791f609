package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
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
	documents := utilyaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(slices.Concat(route, []byte("\n---\n"), monitoring))))
	defer func() { _ = documents.Close() }()
	buffer := make([]byte, 8<<20)
	for {
		n, err := documents.Read(buffer)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("failed to read CustomResourceDefinitions: %w", err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(buffer[:n], crd); err != nil {
			return nil, fmt.Errorf("failed to decode a CustomResourceDefinition: %w", err)
		}
		if slices.Contains([]string{HTTPRouteCRD, PodMonitorCRD, PrometheusRuleCRD, ServiceMonitorCRD}, crd.Name) {
			out[crd.Name] = crd
		}
	}
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
	return untilServed(ctx, admin, crd.Name, func(crd *apiextensionsv1.CustomResourceDefinition) bool {
		return crd != nil && apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Established)
	})
}

// RemoveCRD deletes a CRD with all of its objects and returns when it is gone.
func RemoveCRD(ctx context.Context, admin client.Client, name string) error {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Name = name
	if err := admin.Delete(ctx, crd); err != nil {
		return fmt.Errorf("failed to remove %s: %w", name, err)
	}
	return untilServed(ctx, admin, name, func(crd *apiextensionsv1.CustomResourceDefinition) bool { return crd == nil })
}

// untilServed waits until the condition is true for a CRD. The condition gets nil if the CRD does
// not exist.
func untilServed(ctx context.Context, admin client.Client, name string, is func(*apiextensionsv1.CustomResourceDefinition) bool) error {
	return Eventually(ctx, 50*time.Millisecond, func(ctx context.Context) error {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		err := admin.Get(ctx, client.ObjectKey{Name: name}, crd)
		if apierrors.IsNotFound(err) {
			crd = nil
		} else if err != nil {
			return err
		}
		if !is(crd) {
			return fmt.Errorf("%s is not as it should be yet", name)
		}
		return nil
	})
}
