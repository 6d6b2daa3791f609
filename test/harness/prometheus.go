package harness

import (
	"context"
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/api"
	prometheusv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
)

// Prometheus is a running Prometheus.
type Prometheus struct {
	*Process
	api prometheusv1.API
}

// StartPrometheus starts Prometheus with a configuration file and waits until it is ready. Its data
// and its log are in dir.
func StartPrometheus(ctx context.Context, binary, config, dir string) (*Prometheus, error) {
	address, err := FreeAddress()
	if err != nil {
		return nil, err
	}
	client, err := api.NewClient(api.Config{Address: "http://" + address})
	if err != nil {
		return nil, err
	}
	p := &Prometheus{api: prometheusv1.NewAPI(client)}
	cmd := exec.Command(binary, "--config.file="+config, //nolint:gosec // a tool of this repository
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address, "--log.level=warn")
	p.Process, err = startServer(ctx, cmd, dir, "prometheus", "http://"+address+"/-/ready")
	return p, err
}

// Query returns the current value of a query. It returns an error if Prometheus rejects the query
// or the result is not a vector.
func (p *Prometheus) Query(ctx context.Context, query string) ([]Sample, error) {
	value, _, _, err := p.api.Query(ctx, query, time.Time{}, prometheusv1.WithTimeout(10*time.Second))
	if err != nil {
		return nil, fmt.Errorf("failed to query %s: %w", query, err)
	}
	vector, isVector := value.(model.Vector)
	if !isVector {
		return nil, fmt.Errorf("failed to query %s: the answer is a %s", query, value.Type())
	}
	out := make([]Sample, len(vector))
	for i, sample := range vector {
		out[i] = Sample{Labels: labelsOf(model.LabelSet(sample.Metric)), Value: float64(sample.Value)}
	}
	return out, nil
}

// Series is the result of a query in a time range. A point is a time in seconds and a value.
type Series struct {
	Labels map[string]string
	Points [][2]float64
}

// QueryRange returns the values of a query in a time range. It leaves out values that are not
// finite, and returns an error if Prometheus rejects the query.
func (p *Prometheus) QueryRange(ctx context.Context, query string, from, to time.Time, step time.Duration) ([]Series, error) {
	value, _, _, err := p.api.QueryRange(ctx, query, prometheusv1.Range{Start: from, End: to, Step: step})
	if err != nil {
		return nil, fmt.Errorf("failed to query %s: %w", query, err)
	}
	matrix, isMatrix := value.(model.Matrix)
	if !isMatrix {
		return nil, fmt.Errorf("failed to query %s: the answer is a %s", query, value.Type())
	}
	out := make([]Series, len(matrix))
	for i, stream := range matrix {
		out[i].Labels = labelsOf(model.LabelSet(stream.Metric))
		for _, pair := range stream.Values {
			if number := float64(pair.Value); !math.IsNaN(number) && !math.IsInf(number, 0) {
				out[i].Points = append(out[i].Points, [2]float64{float64(pair.Timestamp) / 1000, number})
			}
		}
	}
	return out, nil
}

// Alert is a pending or firing alert.
type Alert struct {
	// State is pending or firing.
	State  string
	Labels map[string]string
}

// Alerts returns the pending and firing alerts.
func (p *Prometheus) Alerts(ctx context.Context) ([]Alert, error) {
	result, err := p.api.Alerts(ctx)
	if err != nil {
		return nil, fmt.Errorf("failed to read the alerts: %w", err)
	}
	out := make([]Alert, len(result.Alerts))
	for i, alert := range result.Alerts {
		out[i] = Alert{State: string(alert.State), Labels: labelsOf(alert.Labels)}
	}
	return out, nil
}

// Rules returns the error of each alerting rule by its name, or "" if its last evaluation
// succeeded. It omits rules that were never evaluated.
func (p *Prometheus) Rules(ctx context.Context) (map[string]string, error) {
	result, err := p.api.Rules(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("failed to read the rules: %w", err)
	}
	out := map[string]string{}
	for _, group := range result.Groups {
		for _, rule := range group.Rules {
			if alert, isAlert := rule.(prometheusv1.AlertingRule); isAlert && alert.Health != prometheusv1.RuleHealthUnknown {
				out[alert.Name] = alert.LastError
			}
		}
	}
	return out, nil
}

func labelsOf(set model.LabelSet) map[string]string {
	out := map[string]string{}
	for name, value := range set {
		out[string(name)] = string(value)
	}
	return out
}
