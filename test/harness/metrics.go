package harness

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// GetMetrics requests the metrics of a manager and returns the status code and the body. If token
// is "", the request has no bearer token. The URL is the base URL of the server, for example
// https://127.0.0.1:8443. The timeout is 10 seconds.
func GetMetrics(ctx context.Context, url, token string) (code int, body string, err error) {
	httpClient := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true, //nolint:gosec // self-signed
	}}
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

var label = regexp.MustCompile(`(\w+)="([^"]*)"`)

// Samples returns the values of a metric. If there are none, it returns an error.
func Samples(metrics, name string) ([]Sample, error) {
	var out []Sample
	for line := range strings.Lines(metrics) {
		rest, found := strings.CutPrefix(line, name)
		if !found || rest[0] != '{' && rest[0] != ' ' {
			continue
		}
		last := strings.LastIndexByte(rest, ' ')
		if last < 0 {
			return nil, fmt.Errorf("no value in %q", line)
		}
		value, err := strconv.ParseFloat(strings.TrimSpace(rest[last:]), 64)
		if err != nil {
			return nil, fmt.Errorf("failed to read the value of %s: %w", name, err)
		}
		sample := Sample{Labels: map[string]string{}, Value: value}
		for _, pair := range label.FindAllStringSubmatch(rest[:last], -1) {
			sample.Labels[pair[1]] = pair[2]
		}
		out = append(out, sample)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("there is no metric %s", name)
	}
	return out, nil
}
