package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/example/nginx-operator/cmd/kubectl-nginx/printer"
)

// ServerLoad has the requests of a server, in all Pods of an instance since their receivers started.
type ServerLoad struct {
	Server   string `json:"server"`
	Requests int64  `json:"requests"`
	// Errors counts the responses with a status of 500 or more.
	Errors       int64   `json:"errors"`
	ErrorPercent float64 `json:"errorPercent"`
	// P50 and P99 are bounds of 50 and 99 percent of the durations, or "" without requests.
	P50 string `json:"p50"`
	P99 string `json:"p99"`

	buckets map[float64]float64
}

// topServers prints the requests of an instance by server.
func (c *cli) topServers(ctx context.Context, connected *connection, name string, which selection) error {
	receivers, err := connected.exporters(ctx, ofRequests, name, which)
	if err != nil {
		return err
	}

	scrapes, errs := scrapeAll(ctx, connected, receivers, parseServers)
	for i, receiver := range receivers {
		if errs[i] != nil {
			err = errors.Join(err, receiver.failed(errs[i]))
		}
	}
	return cmp.Or(c.printServers(serverLoads(scrapes), &which.format), err)
}

// serverLoads returns the sums over the Pods, by server.
func serverLoads(scrapes []model.Vector) []*ServerLoad {
	loads := map[string]*ServerLoad{}
	for _, sample := range slices.Concat(scrapes...) {
		server := string(sample.Metric["server"])
		if loads[server] == nil {
			loads[server] = &ServerLoad{Server: server, buckets: map[float64]float64{}}
		}
		loads[server].add(sample)
	}

	list := []*ServerLoad{}
	for _, server := range slices.Sorted(maps.Keys(loads)) {
		load := loads[server]
		load.ErrorPercent = 100 * float64(load.Errors) / float64(max(load.Requests, 1))
		load.P50, load.P99 = percentile(load.buckets, 50), percentile(load.buckets, 99)
		list = append(list, load)
	}
	return list
}

func (c *cli) printServers(loads []*ServerLoad, format *output) error {
	if printed, err := format.print(c.Out, map[string]any{"items": loads}); printed || len(loads) == 0 {
		return err
	}

	table := tabwriter.NewWriter(c.Out, 0, 0, 3, ' ', 0)
	_, _ = fmt.Fprintln(table, "SERVER\tREQUESTS\tERRORS\tERRORS%\tP50\tP99")
	for _, load := range loads {
		_, _ = fmt.Fprintf(table, "%s\t%d\t%d\t%.1f\t%s\t%s\n",
			printer.Line(load.Server), load.Requests, load.Errors, load.ErrorPercent, load.P50, load.P99)
	}
	return table.Flush()
}

func (l *ServerLoad) add(sample *model.Sample) {
	value := float64(sample.Value)
	switch sample.Metric[model.MetricNameLabel] {
	case requestsMetric:
		l.Requests += int64(value)
		if sample.Metric["class"] == "5xx" {
			l.Errors += int64(value)
		}
	case durationMetric + "_bucket":
		if bound, err := strconv.ParseFloat(string(sample.Metric[model.BucketLabel]), 64); err == nil {
			l.buckets[bound] += value
		}
	}
}

const requestsMetric, durationMetric = "nginx_server_requests_total", "nginx_server_request_duration_seconds"

// parseServers reads the metrics of servers that topServers needs.
func parseServers(from io.Reader) (model.Vector, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(from)
	if err != nil {
		return nil, err
	}

	for name := range families {
		if name != requestsMetric && name != durationMetric {
			delete(families, name)
		}
	}
	return expfmt.ExtractSamples(&expfmt.DecodeOptions{}, slices.Collect(maps.Values(families))...)
}

// percentile returns the bound of the bucket with a percentile, or "" without values. buckets has
// the cumulative numbers of values, by upper bound in seconds.
func percentile(buckets map[float64]float64, percent float64) string {
	total, text := buckets[math.Inf(1)], ""
	for _, bound := range slices.Sorted(maps.Keys(buckets)) {
		switch {
		case total <= 0:
			return ""
		case math.IsInf(bound, 1):
			return ">" + text
		}
		text = time.Duration(bound * float64(time.Second)).String()
		if buckets[bound] >= total*percent/100 {
			return "<=" + text
		}
	}
	return text
}
