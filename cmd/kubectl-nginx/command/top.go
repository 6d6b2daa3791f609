package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"text/tabwriter"
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
	// maxMetrics bounds what is read of an exporter, which answers with some 10 KiB.
	maxMetrics = 1 << 20
	// maxScrapes is how many exporters are asked at a time.
	maxScrapes = 16
)

// Load is what nginx of a Pod, or of all Pods of an instance, does.
type Load struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Pod is "" where this is the sum over all Pods, of which Pods have answered.
	Pod  string `json:"pod,omitempty"`
	Pods int    `json:"pods,omitempty"`
	// RequestsPerSecond is the rate between two scrapes, those of probes and of the scrapes included.
	RequestsPerSecond float64 `json:"requestsPerSecond"`
	// Active is how many connections there are; nginx reads a request of Reading, writes a response to Writing, and the others are idle.
	Active  int64 `json:"active"`
	Reading int64 `json:"reading"`
	Writing int64 `json:"writing"`
	Waiting int64 `json:"waiting"`
	// Dropped is how many connections nginx has closed since it started because no worker had one left.
	Dropped int64 `json:"dropped"`
}

// scrape is what an exporter says, by the name of the metric, and when.
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
		Long: `Show requests and connections of each Pod of an instance, from the exporter that spec.monitoring has
beside nginx. Without a name, the sum over the Pods of each instance that is monitored. Requests are
counted between two scrapes; those of probes and scrapes are among them.

It takes the RBAC permission to get pods/proxy.`,
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
		return nil, fmt.Errorf("NginxOperator %q has no exporter: set spec.monitoring.enabled to true", name)
	}
	exporters, err := c.exportersIn(ctx, object)
	if err == nil && len(exporters) == 0 {
		err = fmt.Errorf("no exporter of NginxOperator %q runs; see kubectl nginx status %s", name, name)
	}
	return exporters, err
}

// exporters returns the exporters of all instances that are monitored.
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
		err = errors.New("no exporter of an instance runs: set spec.monitoring.enabled to true")
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

// runningExporter returns the port of the exporter of a Pod, 0 where none runs.
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

// loads asks each exporter twice. An error tells of those that did not answer; the others are there.
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
				out[i], errs[i] = ask(ctx, clients, exporter)
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
			failed = errors.Join(failed, fmt.Errorf("failed to ask the exporter of Pod %s/%s: %w", exporter.pod.Namespace, exporter.pod.Name, err))
			continue
		}
		load := loadOf(before[i], now[i])
		load.Namespace, load.Name, load.Pod = exporter.object.Namespace, exporter.object.Name, exporter.pod.Name
		out = append(out, load)
	}
	return out, failed
}

// ask reads the metrics of an exporter through the API server.
func ask(ctx context.Context, clients kubernetes.Interface, exporter exporterOf) (_ scrape, err error) {
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

// parse reads metrics without labels of nginx, and that nginx has answered.
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
		return scrape{}, errors.New("nginx did not answer it")
	}
	return out, nil
}

// loadOf returns what nginx does, from two scrapes. Counters begin anew when it is restarted.
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

// sums returns the sum over the Pods of each instance. Those of one are one after the other.
func sums(loads []Load) []Load {
	var out []Load
	for _, load := range loads {
		if last := len(out) - 1; last < 0 || out[last].Namespace != load.Namespace || out[last].Name != load.Name {
			out = append(out, Load{Namespace: load.Namespace, Name: load.Name})
		}
		sum := &out[len(out)-1]
		sum.Pods++
		sum.RequestsPerSecond += load.RequestsPerSecond
		sum.Active, sum.Reading, sum.Writing, sum.Waiting = sum.Active+load.Active, sum.Reading+load.Reading, sum.Writing+load.Writing,
			sum.Waiting+load.Waiting
		sum.Dropped += load.Dropped
	}
	return out
}

// printLoads prints a row for each.
func (c *cli) printLoads(loads []Load, format *output) error {
	list := struct {
		Items []Load `json:"items"`
	}{append([]Load{}, loads...)}
	if printed, err := format.print(c.Out, list); printed || len(loads) == 0 {
		return err
	}
	table := tabwriter.NewWriter(c.Out, 0, 0, 3, ' ', 0)
	first := "NAMESPACE\tNAME\tPODS"
	if loads[0].Pod != "" {
		first = "POD"
	}
	_, _ = fmt.Fprintln(table, first+"\tREQUESTS/S\tACTIVE\tREADING\tWRITING\tWAITING\tDROPPED")
	for _, load := range loads {
		name := load.Pod
		if name == "" {
			name = fmt.Sprintf("%s\t%s\t%d", load.Namespace, load.Name, load.Pods)
		}
		_, _ = fmt.Fprintf(table, "%s\t%.1f\t%d\t%d\t%d\t%d\t%d\n",
			name, load.RequestsPerSecond, load.Active, load.Reading, load.Writing, load.Waiting, load.Dropped)
	}
	return table.Flush()
}
