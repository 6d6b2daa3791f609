package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/wellknown"
)

const (
	// maxMetrics is the maximum size of an exporter's response in bytes. The usual size is 10 KiB.
	maxMetrics = 1 << 20
	// maxScrapes is the maximum number of concurrent scrapes.
	maxScrapes = 16
)

// scrape has the metrics of an exporter by name, and the time of the scrape.
type scrape struct {
	at     time.Time
	values map[string]float64
}

// exporterOf is the exporter of a Pod of an instance.
type exporterOf struct {
	object *v1alpha2.NginxOperator
	pod    *corev1.Pod
	port   int32
}

func newTop(c *cli) *cobra.Command {
	var format output
	var which selection
	var interval time.Duration
	cmd := &cobra.Command{
		Use:   "top [NAME]",
		Short: "Show requests and connections of instances",
		Long: `Show requests and connections of each Pod of an instance, from the exporter of spec.monitoring.
Without a name, show the sum over the Pods of each monitored instance. The request rate is
measured between two scrapes, and includes probes and scrapes.

The command requires the RBAC permission to get pods/proxy.`,
		Example:           "  kubectl nginx top web\n  kubectl nginx top -A --interval=10s",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: c.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := format.check(); err != nil {
				return err
			}
			if err := which.check(args); err != nil {
				return err
			}
			if interval < time.Second || interval > time.Minute {
				return fmt.Errorf("--interval is %s, must be between 1s and 1m", interval)
			}
			connected, err := c.connect(c.warnings())
			if err != nil {
				return err
			}
			var exporters []exporterOf
			if len(args) > 0 {
				exporters, err = connected.exportersOf(cmd.Context(), args[0])
			} else {
				exporters, err = connected.exporters(cmd.Context(), which)
			}
			if err != nil {
				return err
			}
			loads, failed := connected.loads(cmd.Context(), exporters, interval)
			if len(args) == 0 {
				loads = sums(loads)
			}
			if err := c.printLoads(loads, &format); err != nil {
				return err
			}
			return failed
		},
	}
	format.add(cmd)
	which.add(cmd)
	cmd.Flags().DurationVar(&interval, "interval", 2*time.Second, "time between the two scrapes")
	return cmd
}

// exportersOf returns the exporters of an instance.
func (c *connection) exportersOf(ctx context.Context, name string) ([]exporterOf, error) {
	object, err := c.instance(ctx, name)
	if err != nil {
		return nil, err
	}
	if !defaults.HasExporter(&object.Spec) {
		return nil, fmt.Errorf("NginxOperator %q has no exporter. Set spec.monitoring.enabled to true", name)
	}
	exporters, err := c.exportersIn(ctx, object)
	if err == nil && len(exporters) == 0 {
		err = fmt.Errorf("no exporter of NginxOperator %q is running. For the reason, run: kubectl nginx status %s", name, name)
	}
	return exporters, err
}

// exporters returns the exporters of all monitored instances.
func (c *connection) exporters(ctx context.Context, which selection) ([]exporterOf, error) {
	var out []exporterOf
	err := c.eachInstance(ctx, which, func(object *v1alpha2.NginxOperator) error {
		if !defaults.HasExporter(&object.Spec) {
			return nil
		}
		found, err := c.exportersIn(ctx, object)
		out = append(out, found...)
		return err
	})
	if err == nil && len(out) == 0 {
		err = errors.New("no instance has a running exporter. Set spec.monitoring.enabled to true")
	}
	return out, err
}

func (c *connection) exportersIn(ctx context.Context, object *v1alpha2.NginxOperator) ([]exporterOf, error) {
	pods, err := c.pods(ctx, object)
	if err != nil {
		return nil, err
	}
	var out []exporterOf
	for i := range pods {
		if port := runningExporter(&pods[i]); port != 0 {
			out = append(out, exporterOf{object, &pods[i], port})
		}
	}
	return out, nil
}

// runningExporter returns the port of the exporter of a Pod, or 0 if no exporter is running.
func runningExporter(pod *corev1.Pod) int32 {
	runs := slices.ContainsFunc(pod.Status.InitContainerStatuses, func(status corev1.ContainerStatus) bool {
		return status.Name == wellknown.ExporterContainer && status.State.Running != nil
	})
	at := slices.IndexFunc(pod.Spec.InitContainers, func(one corev1.Container) bool { return one.Name == wellknown.ExporterContainer })
	if !runs || at < 0 || len(pod.Spec.InitContainers[at].Ports) == 0 {
		return 0
	}
	return pod.Spec.InitContainers[at].Ports[0].ContainerPort
}

// loads scrapes each exporter twice. The error lists the exporters that failed. The result has the
// loads of all other exporters.
func (c *connection) loads(ctx context.Context, exporters []exporterOf, interval time.Duration) ([]Load, error) {
	clients, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		return nil, err
	}
	all := func() ([]scrape, []error) {
		out, errs := make([]scrape, len(exporters)), make([]error, len(exporters))
		var group errgroup.Group
		group.SetLimit(maxScrapes)
		for i, exporter := range exporters {
			group.Go(func() error {
				out[i], errs[i] = fetch(ctx, clients, exporter)
				return nil
			})
		}
		return out, append(errs, group.Wait())
	}
	before, errsBefore := all()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(interval):
	}
	now, errsNow := all()
	var out []Load
	var failed error
	for i, exporter := range exporters {
		if err := errors.Join(errsBefore[i], errsNow[i]); err != nil {
			failed = errors.Join(failed, fmt.Errorf("failed to scrape the exporter of Pod %s/%s: %w",
				exporter.pod.Namespace, exporter.pod.Name, err))
			continue
		}
		load := loadOf(before[i], now[i])
		load.Namespace, load.Name, load.Pod = exporter.object.Namespace, exporter.object.Name, exporter.pod.Name
		out = append(out, load)
	}
	return out, failed
}

// fetch scrapes an exporter through the API server.
func fetch(ctx context.Context, clients kubernetes.Interface, exporter exporterOf) (_ scrape, err error) {
	pods := clients.CoreV1().Pods(exporter.pod.Namespace)
	body, err := pods.ProxyGet("http", exporter.pod.Name, strconv.Itoa(int(exporter.port)), "metrics", nil).Stream(ctx)
	if err != nil {
		return scrape{}, err
	}
	defer func() { err = errors.Join(err, body.Close()) }()
	out, err := parse(io.LimitReader(body, maxMetrics))
	out.at = time.Now()
	return out, err
}

// parse reads the metrics that have a single series. It returns an error if nginx did not answer
// the exporter.
func parse(from io.Reader) (scrape, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(from)
	if err != nil {
		return scrape{}, err
	}
	out := scrape{values: map[string]float64{}}
	for name, family := range families {
		if len(family.Metric) == 1 {
			out.values[name] = family.Metric[0].GetCounter().GetValue() + family.Metric[0].GetGauge().GetValue()
		}
	}
	if out.values["nginx_up"] != 1 {
		return scrape{}, errors.New("nginx did not answer the exporter")
	}
	return out, nil
}

// loadOf returns the load between two scrapes. Counters start at 0 again when nginx restarts.
func loadOf(before, now scrape) Load {
	count := func(name string) int64 { return int64(now.values["nginx_connections_"+name]) }
	const requests = "nginx_http_requests_total"
	grown := now.values[requests] - before.values[requests]
	if grown < 0 {
		grown = now.values[requests]
	}
	return Load{
		RequestsPerSecond: grown / now.at.Sub(before.at).Seconds(),
		Active:            count("active"), Reading: count("reading"), Writing: count("writing"), Waiting: count("waiting"),
		Dropped: count("accepted") - count("handled"),
	}
}
