package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/spf13/cobra"

	"github.com/example/nginx-operator/cmd/kubectl-nginx/printer"
)

type scrape struct {
	at     time.Time
	values map[string]float64
}

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

// loads scrapes each exporter twice. The error lists those that failed.
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

// parse reads the metrics that have a single series.
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

// Load has the requests and connections of a Pod, or of all Pods of an instance.
type Load struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Pod is the name of the Pod, or "" for a sum. Pods is then the number of Pods that answered.
	Pod  string `json:"pod,omitempty"`
	Pods int    `json:"pods,omitempty"`
	// RequestsPerSecond is the rate between two scrapes. It includes probes and scrapes.
	RequestsPerSecond float64 `json:"requestsPerSecond"`
	// Active is the number of connections. Waiting connections are idle.
	Active  int64 `json:"active"`
	Reading int64 `json:"reading"`
	Writing int64 `json:"writing"`
	Waiting int64 `json:"waiting"`
	// Dropped counts connections that nginx closed because worker_connections were used up.
	Dropped int64 `json:"dropped"`
}

// sums returns the sum over the Pods of each instance. Pods of an instance must be adjacent.
func sums(loads []Load) []Load {
	var sums []Load
	for _, load := range loads {
		if last := len(sums) - 1; last < 0 || sums[last].Namespace != load.Namespace || sums[last].Name != load.Name {
			sums = append(sums, Load{Namespace: load.Namespace, Name: load.Name})
		}

		sum := &sums[len(sums)-1]
		sum.Pods++
		sum.RequestsPerSecond += load.RequestsPerSecond
		sum.Active += load.Active
		sum.Reading += load.Reading
		sum.Writing += load.Writing
		sum.Waiting += load.Waiting
		sum.Dropped += load.Dropped
	}

	return sums
}

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
		name := printer.Line(load.Pod)
		if name == "" {
			name = fmt.Sprintf("%s\t%s\t%d", printer.Line(load.Namespace), printer.Line(load.Name), load.Pods)
		}
		_, _ = fmt.Fprintf(table, "%s\t%.1f\t%d\t%d\t%d\t%d\t%d\n",
			name, load.RequestsPerSecond, load.Active, load.Reading, load.Writing, load.Waiting, load.Dropped)
	}

	return table.Flush()
}
