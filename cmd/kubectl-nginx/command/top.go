package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/spf13/cobra"
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

// scrape has the metrics of an exporter by name, and the time of the scrape.
type scrape struct {
	at     time.Time
	values map[string]float64
}

// exporter is a running container that serves metrics.
type exporter struct {
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

func newTop(c *cli) *cobra.Command {
	var which selection
	var servers bool
	var interval time.Duration
	cmd := &cobra.Command{
		Use:   "top [NAME]",
		Short: "Show requests and connections of instances",
		Long: `Show requests and connections of each Pod of an instance, from the exporter of spec.monitoring.
Without a name, show the sum over the Pods of each monitored instance. The request rate is
measured between two scrapes, and includes probes and scrapes.

With --servers, show the requests of each server of an instance since its Pods started: how many had
a status of 500 or more, and bounds of 50 and 99 percent of the durations. Requires
spec.monitoring.requestMetrics.`,
		Example:           "  kubectl nginx top web\n  kubectl nginx top -A --interval=10s\n  kubectl nginx top web --servers",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: c.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := which.check(args); err != nil {
				return err
			}
			if servers && len(args) == 0 {
				return errors.New("--servers requires the name of an instance")
			}
			if interval < time.Second || interval > time.Minute {
				return fmt.Errorf("--interval is %s, must be between 1s and 1m", interval)
			}

			connected, err := c.connect(c.warn)
			if err != nil {
				return err
			}

			name := strings.Join(args, "") // at most one
			if servers {
				return c.topServers(cmd.Context(), connected, name, which)
			}

			exporters, err := connected.exporters(cmd.Context(), ofConnections, name, which)
			if err != nil {
				return err
			}

			loads, failed := connected.loads(cmd.Context(), exporters, interval)
			if name == "" {
				loads = sums(loads)
			}
			if err := c.printLoads(loads, &which.format); err != nil {
				return err
			}

			return failed
		},
	}

	which.add(cmd)
	cmd.Flags().BoolVar(&servers, "servers", false, "show requests, errors, and durations of each server")
	cmd.Flags().DurationVar(&interval, "interval", 2*time.Second, "time between the two scrapes")
	return cmd
}

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
				exporters = append(exporters, exporter{object, &pods[i], port})
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

// loads scrapes each exporter twice. The error lists the exporters that failed. The result has the
// loads of all other exporters.
func (c *connection) loads(ctx context.Context, exporters []exporter, interval time.Duration) ([]Load, error) {
	before, errsBefore := scrapeAll(ctx, c, exporters, parse)
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(interval):
	}

	after, errsAfter := scrapeAll(ctx, c, exporters, parse)

	var loads []Load
	var failed error
	for i, exporter := range exporters {
		if err := cmp.Or(errsBefore[i], errsAfter[i]); err != nil {
			failed = errors.Join(failed, exporter.failed(err))
			continue
		}

		load := loadOf(before[i], after[i])
		load.Namespace, load.Name, load.Pod = exporter.object.Namespace, exporter.object.Name, exporter.pod.Name
		loads = append(loads, load)
	}

	return loads, failed
}

func (e exporter) failed(err error) error {
	return fmt.Errorf("failed to scrape the exporter of Pod %s/%s: %w", e.pod.Namespace, e.pod.Name, err)
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

// parse reads the metrics that have a single series. It returns an error if nginx did not answer
// the exporter.
func parse(from io.Reader) (scrape, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(from)
	if err != nil {
		return scrape{}, err
	}

	values := map[string]float64{}
	for name, family := range families {
		if len(family.Metric) == 1 {
			values[name] = family.Metric[0].GetCounter().GetValue() + family.Metric[0].GetGauge().GetValue()
		}
	}

	if values["nginx_up"] != 1 {
		return scrape{}, errors.New("nginx does not answer the exporter (nginx_up 0). For the reason, look at the log of the Pod")
	}

	return scrape{time.Now(), values}, nil
}

func loadOf(before, after scrape) Load {
	count := func(name string) int64 { return int64(after.values["nginx_connections_"+name]) }
	const requests = "nginx_http_requests_total"
	grown := after.values[requests] - before.values[requests]
	if grown < 0 { // nginx has restarted
		grown = after.values[requests]
	}
	return Load{
		RequestsPerSecond: grown / after.at.Sub(before.at).Seconds(),
		Active:            count("active"), Reading: count("reading"), Writing: count("writing"), Waiting: count("waiting"),
		Dropped: count("accepted") - count("handled"),
	}
}
