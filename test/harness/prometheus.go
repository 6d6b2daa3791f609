package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// Prometheus is a running Prometheus.
type Prometheus struct {
	*Process
	url string
}

// StartPrometheus starts Prometheus with a configuration file and waits until it is ready. Its data
// and its log are in dir. Stop ends it.
func StartPrometheus(ctx context.Context, binary, config, dir string) (*Prometheus, error) {
	address, err := FreeAddress()
	if err != nil {
		return nil, err
	}
	p := &Prometheus{url: "http://" + address}
	cmd := exec.Command(binary, "--config.file="+config, //nolint:gosec // a tool of this repository
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address, "--log.level=warn")
	if p.Process, err = startProcess(cmd, dir, "prometheus"); err != nil {
		return nil, err
	}
	if err := p.awaitOK(ctx, p.url+"/-/ready"); err != nil {
		p.Stop()
		return nil, fmt.Errorf("failed to start Prometheus: %w", err)
	}
	return p, nil
}

// Stop sends SIGTERM and returns when Prometheus has ended. It can be called more than once.
func (p *Prometheus) Stop() { p.end(syscall.SIGTERM) }

// Query returns the current value of a query. It returns an error if Prometheus rejects the query
// or the result is not a vector.
func (p *Prometheus) Query(ctx context.Context, query string) ([]Sample, error) {
	var data struct {
		ResultType string
		Result     []struct {
			Metric map[string]string
			// Value is a timestamp and a number. The number is a string.
			Value [2]any
		}
	}
	if err := p.get(ctx, "query?query="+url.QueryEscape(query), &data); err != nil {
		return nil, fmt.Errorf("failed to query %s: %w", query, err)
	}
	if data.ResultType != "vector" {
		return nil, fmt.Errorf("failed to query %s: the answer is a %s", query, data.ResultType)
	}
	out := make([]Sample, len(data.Result))
	for i, sample := range data.Result {
		text, _ := sample.Value[1].(string)
		value, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, fmt.Errorf("failed to read the value of %s: %w", query, err)
		}
		out[i] = Sample{Labels: sample.Metric, Value: value}
	}
	return out, nil
}

// Alert is a pending or firing alert.
type Alert struct {
	// State is pending or firing.
	State               string
	Labels, Annotations map[string]string
}

// Alerts returns the pending and firing alerts.
func (p *Prometheus) Alerts(ctx context.Context) ([]Alert, error) {
	var data struct{ Alerts []Alert }
	if err := p.get(ctx, "alerts", &data); err != nil {
		return nil, fmt.Errorf("failed to read the alerts: %w", err)
	}
	return data.Alerts, nil
}

// Rules returns the error of each rule by its name, or "" if its last evaluation succeeded. It
// omits rules that were never evaluated.
func (p *Prometheus) Rules(ctx context.Context) (map[string]string, error) {
	var data struct {
		Groups []struct {
			Rules []struct{ Name, Health, LastError string }
		}
	}
	if err := p.get(ctx, "rules", &data); err != nil {
		return nil, fmt.Errorf("failed to read the rules: %w", err)
	}
	out := map[string]string{}
	for _, group := range data.Groups {
		for _, rule := range group.Rules {
			if rule.Health != "unknown" {
				out[rule.Name] = rule.LastError
			}
		}
	}
	return out, nil
}

// get reads the data at a path of the Prometheus API.
func (p *Prometheus) get(ctx context.Context, path string, data any) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+"/api/v1/"+path, http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	answer := struct {
		Error string
		Data  any
	}{Data: data}
	if err := json.Unmarshal(text, &answer); err != nil || answer.Error != "" || response.StatusCode != http.StatusOK {
		return fmt.Errorf("the answer is %s: %s%.500s", response.Status, answer.Error, text)
	}
	return nil
}
