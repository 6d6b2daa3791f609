package harness

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// GetMetrics requests the metrics of a manager and returns the status code and the body. If token
// is "", the request has no bearer token. The URL is the base URL of the server, for example
// https://127.0.0.1:8443. The timeout is 10 seconds.
func GetMetrics(ctx context.Context, url, token string) (code int, body string, err error) {
	httpClient := &http.Client{Timeout: 10 * time.Second, Transport: insecure}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/metrics", nil)
	if err != nil {
		return 0, "", err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := httpClient.Do(request)
	if err != nil {
		return 0, "", fmt.Errorf("failed to read the metrics: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, "", fmt.Errorf("failed to read the metrics: %w", err)
	}
	return response.StatusCode, string(text), nil
}

// Sample is one value of a metric, with its labels.
type Sample struct {
	Labels map[string]string
	Value  float64
}

// Samples returns the values of a metric, or the value of a series as it is printed, for example
// total{outcome="failed"}. If there are none, it returns an error.
func Samples(metrics, name string) ([]Sample, error) {
	// Parse only lines of this metric, because an API server has many. Without their types, the
	// parts of a histogram are metrics of their own.
	var lines strings.Builder
	for line := range strings.Lines(metrics) {
		if strings.HasPrefix(line, name) {
			lines.WriteString(line)
		}
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(lines.String()))
	if err != nil {
		return nil, fmt.Errorf("failed to read the values of %s: %w", name, err)
	}
	var out []Sample
	family, _, _ := strings.Cut(name, "{")
	for _, metric := range families[family].GetMetric() {
		sample := Sample{Labels: map[string]string{}, Value: metric.GetUntyped().GetValue()}
		for _, label := range metric.GetLabel() {
			sample.Labels[label.GetName()] = label.GetValue()
		}
		out = append(out, sample)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("there is no metric %s", name)
	}
	return out, nil
}
