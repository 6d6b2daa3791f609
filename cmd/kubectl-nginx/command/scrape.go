package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/wellknown"
)

const (
	// maxMetrics is the maximum size of a response in bytes. The usual size is 10 KiB for an
	// exporter, and at most 1.2 MiB for a receiver of request metrics.
	maxMetrics = 2 << 20
	maxScrapes = 8
)

// exporter is a running container that serves metrics.
type exporter struct {
	name   string
	object *v1alpha2.NginxOperator
	pod    *corev1.Pod
	port   int32
}

// sidecar is a container of the operator that serves metrics.
type sidecar struct {
	name, container, remedy string
	isDeclared              func(*v1alpha2.NginxOperatorSpec) bool
}

var (
	ofConnections = sidecar{"exporter", wellknown.ExporterContainer, "Set spec.monitoring.enabled to true", defaults.HasExporter}
	ofRequests    = sidecar{
		"receiver of request metrics", wellknown.RequestMetricsContainer, "Set spec.monitoring.requestMetrics to {}",
		defaults.HasRequestMetrics,
	}
)

// exporters returns the running sidecars of an instance, or of all selected instances if the name is
// "".
func (c *connection) exporters(ctx context.Context, of sidecar, name string, which selection) ([]exporter, error) {
	var exporters []exporter
	isMonitored := false
	add := func(object *v1alpha2.NginxOperator) error {
		if !of.isDeclared(&object.Spec) {
			return nil
		}

		isMonitored = true
		pods, err := c.pods(ctx, object)
		for i := range pods {
			if port := runningPort(&pods[i], of.container); port != 0 {
				exporters = append(exporters, exporter{of.name, object, &pods[i], port})
			}
		}

		return err
	}

	var err error
	if name == "" {
		err = c.eachInstance(ctx, which, add)
	} else {
		var object *v1alpha2.NginxOperator
		if object, err = c.instance(ctx, name); err == nil {
			err = add(object)
		}
	}

	switch {
	case err != nil || len(exporters) > 0:
		return exporters, err
	case name == "":
		return nil, fmt.Errorf("no instance has a running %s. %s", of.name, of.remedy)
	case !isMonitored:
		return nil, fmt.Errorf("NginxOperator %q has no %s. %s", name, of.name, of.remedy)
	}

	return nil, fmt.Errorf("no %s of NginxOperator %q is running. "+
		"For the reason, run: kubectl nginx status %s -n %s", of.name, name, name, c.namespace)
}

// runningPort returns the port of a sidecar of a Pod, or 0 if it does not run.
func runningPort(pod *corev1.Pod, sidecar string) int32 {
	runs := slices.ContainsFunc(pod.Status.InitContainerStatuses, func(status corev1.ContainerStatus) bool {
		return status.Name == sidecar && status.State.Running != nil
	})
	for _, container := range pod.Spec.InitContainers {
		if runs && container.Name == sidecar && len(container.Ports) > 0 {
			return container.Ports[0].ContainerPort
		}
	}
	return 0
}

func (e exporter) failed(err error) error {
	return fmt.Errorf("failed to scrape the %s of Pod %s/%s: %w", e.name, e.pod.Namespace, e.pod.Name, err)
}

func scrapeAll[T any](
	ctx context.Context, c *connection, exporters []exporter, parse func(io.Reader) (T, error),
) ([]T, []error) {
	scrapes, errs := make([]T, len(exporters)), make([]error, len(exporters))
	var group errgroup.Group
	group.SetLimit(maxScrapes)
	for i, exporter := range exporters {
		group.Go(func() error {
			scrapes[i], errs[i] = scrapeOne(ctx, c, exporter, parse)
			return nil
		})
	}

	return scrapes, append(errs, group.Wait())
}

func scrapeOne[T any](
	ctx context.Context, c *connection, from exporter, parse func(io.Reader) (T, error),
) (scraped T, err error) {
	pods := c.core.CoreV1().Pods(from.pod.Namespace)
	body, err := pods.ProxyGet("http", from.pod.Name, strconv.Itoa(int(from.port)), "metrics", nil).Stream(ctx)
	if err != nil {
		return scraped, err
	}

	defer func() { err = errors.Join(err, body.Close()) }()
	return parse(io.LimitReader(body, maxMetrics))
}
