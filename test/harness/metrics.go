package harness

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"time"
)

// GetMetrics asks a manager for its metrics with a bearer token, "" for none, and returns the status code and the body. The URL
// is that of the server, for example https://127.0.0.1:8443. It takes 10 seconds at most.
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
