package e2e

// The receiver of request metrics next to the real nginx, as a sidecar of the spec, so that it works
// without the field that adds it.
//
//   - It counts each request by configured server and class of the status code. No label comes from
//     a client.
//   - Bad datagrams do not end it, and are counted.

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/wellknown"
	"github.com/example/nginx-operator/test/harness/mutate"
)

// receiverImage returns the receiver's image in the registry of the cluster.
func receiverImage() string {
	return publishedAt() + "/" + path.Base(wellknown.DefaultRequestMetricsImage)
}

func testReceiver(t *testing.T) {
	object := newObject(newNamespace(t, restricted), "web", 1)
	object.Spec.DrainSeconds = ptr.To(mutate.ShortDrain)
	object.Spec.Sidecars = []v1alpha2.Container{{Name: "receiver", Image: receiverImage()}}
	object.Spec.Config = &v1alpha2.Config{Inline: `log_format requests
    '1|$status|$request_time|$bytes_sent|$request_length|$upstream_response_time|$server_name';
access_log syslog:server=127.0.0.1:9514,facility=local7,tag=nginx_requests,nohostname requests;
server {
    listen 8080;
    server_name shop.example.com;
    location = /fail { return 503; }
    location = /bad {
        access_log syslog:server=127.0.0.1:9514,facility=local7,tag=other,nohostname requests;
        return 204;
    }
    location / { return 200 "shop\n"; }
}
server {
    listen 8080;
    server_name help.example.com;
    return 200 "help\n";
}
`}
	must(t, suite.admin.Create(t.Context(), object))
	waitForReady(t, object)

	client, err := suite.reach.client(true)
	must(t, err)
	url := suite.reach.service(object.Namespace, "web", 8080)
	send := func(count int, host func() string, path string) {
		for range count {
			must(t, requestOf(t.Context(), client, url+path, host()))
		}
	}
	shop := func() string { return "shop.example.com" }
	send(100, shop, "page")
	send(10, shop, "fail")
	send(5, func() string { return "help.example.com" }, "")
	send(50, func() string { return "unknown-" + rand.String(8) + ".example" }, "client-"+rand.String(8))
	send(3, shop, "bad")

	text, metrics := "", suite.reach.pod(onlyPod(t, object), 9114)+"metrics"
	waitFor(t, object.Namespace, "the receiver to count all requests", patience, func(ctx context.Context) error {
		text, err = textOf(ctx, client, metrics)
		if err == nil && !strings.Contains(text, "\nnginx_request_metrics_invalid_messages_total 3\n") {
			err = fmt.Errorf("the metrics are %s", text)
		}
		return err
	})
	for _, line := range []string{
		`nginx_server_requests_total{class="2xx",server="shop.example.com"} 150`,
		`nginx_server_requests_total{class="5xx",server="shop.example.com"} 10`,
		`nginx_server_requests_total{class="2xx",server="help.example.com"} 5`,
		`nginx_server_request_duration_seconds_count{server="shop.example.com"} 160`,
		`nginx_request_metrics_lost_messages_total 0`,
	} {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("the metrics do not have %s", line)
		}
	}
	if strings.Contains(text, "unknown-") || strings.Contains(text, "client-") || t.Failed() {
		t.Errorf("the metrics are:\n%s", text)
	}
}

// requestOf sends a request with a Host header, and ignores the status of the response.
func requestOf(ctx context.Context, client *http.Client, url, host string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	request.Host = host
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	_, err = readText(response)
	return err
}

// textOf returns the complete body of a page.
func textOf(ctx context.Context, client *http.Client, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return "", err
	}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	return string(body), err
}
