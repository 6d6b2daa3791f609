package e2e

// HTTP requests to instances in the cluster, as single requests and as load.

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/example/nginx-operator/test/harness"
	"github.com/example/nginx-operator/test/harness/repeat"
)

// reach provides addresses of instances and HTTP clients that can reach them.
type reach interface {
	// service and pod return the HTTP address of an instance. secure returns its HTTPS address.
	service(namespace, name string, port int32) string
	secure(namespace, name string, port int32) string
	pod(pod *corev1.Pod, port int32) string
	// client returns an HTTP client. direct opens a connection for each request unless keepAlive is
	// set. proxied always returns the same client.
	client(keepAlive bool) (*http.Client, error)
}

// requestTimeout bounds one request. It is longer than the one second after which TCP retransmits a
// lost packet.
const requestTimeout = 5 * time.Second

func newReach(config *rest.Config, local bool) (reach, error) {
	if local {
		return direct{}, nil
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("failed to make an HTTP client: %w", err)
	}
	client.Timeout = requestTimeout
	return &proxied{host: strings.TrimSuffix(config.Host, "/"), http: client}, nil
}

// direct sends requests from the cluster's network. `bin/cluster exec` runs the tests there, with
// cluster DNS.
type direct struct{}

func (direct) service(namespace, name string, port int32) string {
	return fmt.Sprintf("http://%s.%s.svc.cluster.local:%d/", name, namespace, port)
}

func (direct) secure(namespace, name string, port int32) string {
	return fmt.Sprintf("https://%s.%s.svc.cluster.local:%d/", name, namespace, port)
}

func (direct) pod(pod *corev1.Pod, port int32) string {
	return "http://" + net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(int(port))) + "/"
}

func (direct) client(keepAlive bool) (*http.Client, error) {
	return &http.Client{Timeout: requestTimeout, Transport: &http.Transport{
		DisableKeepAlives: !keepAlive,
		// #nosec G402 -- the certificates are made by the tests, which look at them where they
		// matter.
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}, nil
}

// proxied sends requests through the API server, for clusters whose network the tests cannot reach.
type proxied struct {
	host string
	http *http.Client
}

func (p *proxied) service(namespace, name string, port int32) string {
	return fmt.Sprintf("%s/api/v1/namespaces/%s/services/%s:%d/proxy/", p.host, namespace, name, port)
}

func (p *proxied) secure(namespace, name string, port int32) string {
	return fmt.Sprintf("%s/api/v1/namespaces/%s/services/https:%s:%d/proxy/", p.host, namespace, name, port)
}

func (p *proxied) pod(pod *corev1.Pod, port int32) string {
	return fmt.Sprintf("%s/api/v1/namespaces/%s/pods/%s:%d/proxy/", p.host, pod.Namespace, pod.Name, port)
}

// client returns the shared client. The API server opens the connections to the Pods.
func (p *proxied) client(bool) (*http.Client, error) { return p.http, nil }

// page is part of nginx's start page in every nginx image.
const page = "Welcome to nginx!"

// fetch requests nginx's start page once. Any other response is an error.
func fetch(ctx context.Context, client *http.Client, url string) error {
	return fetchText(ctx, client, url, page)
}

// fetchText requests a page once. Any response other than 200 with the text in the body is an
// error.
func fetchText(ctx context.Context, client *http.Client, url, want string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("failed to make a request: %w", err)
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	body, err := readText(response)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK || !strings.Contains(body, want) {
		return fmt.Errorf("%s answered %s: %.200s", url, response.Status, body)
	}
	return nil
}

// readText returns at most the first 64 KiB of a response body, and closes the body.
func readText(response *http.Response) (string, error) {
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<16))
	if err != nil {
		return "", fmt.Errorf("failed to read the answer of %s: %w", response.Request.URL, err)
	}
	return string(body), nil
}

// serves requires an address to return nginx's start page on the first try, on a new connection.
func serves(t *testing.T, namespace, url string) {
	t.Helper()
	if err := fetchOnce(t.Context(), url); err != nil {
		fatal(t, namespace, "nothing serves: %v", err)
	}
}

// serviceDelay bounds how long the nodes take to apply a change of a Service's ready Pods.
// kube-proxy collects changes for one second by default, and takes longer if other tests run at the
// same time. The API does not report when kube-proxy is done.
const serviceDelay = 15 * time.Second

// serviceServes waits up to serviceDelay until a Service answers, and returns how long that took.
func serviceServes(t *testing.T, namespace, name string, port int32) time.Duration {
	t.Helper()
	return addressServes(t, namespace, suite.reach.service(namespace, name, port))
}

func addressServes(t *testing.T, namespace, url string) time.Duration {
	t.Helper()
	return waitFor(t, namespace, url+" to answer", serviceDelay, func(ctx context.Context) error { return fetchOnce(ctx, url) })
}

// answers waits up to serviceDelay until the response of an address contains a text.
func answers(t *testing.T, namespace, url, want string) {
	t.Helper()
	client, err := suite.reach.client(false)
	must(t, err)
	waitFor(t, namespace, url+" to answer "+want, serviceDelay, func(ctx context.Context) error { return fetchText(ctx, client, url, want) })
}

// refuses requires that an address does not return nginx's start page.
func refuses(t *testing.T, namespace, url string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if err := fetchOnce(ctx, url); err == nil {
		fatal(t, namespace, "%s still serves", url)
	}
}

func fetchOnce(ctx context.Context, url string) error {
	client, err := suite.reach.client(false)
	if err != nil {
		return err
	}
	return fetch(ctx, client, url)
}

// load sends requests to one address continuously from several clients. Half of them open a new
// connection for each request.
//
// Over TLS, all clients keep their connections, as browsers do, and open new ones when a Pod ends.
// With a new TLS connection for each request, about 1 in 15,000 was refused, while the plain port
// of the same Pods refused none. The probable cause: on the TLS port, the connection close reaches
// a socket that is already closed, which frees the client's port immediately. The node's connection
// tracking still maps this port to the deleted Pod.
type load struct {
	*repeat.Calls
	url   string
	began time.Time
}

const (
	loadClients = 4
	// loadPause leaves CPU time for the components under test.
	loadPause = 40 * time.Millisecond
	// loadMinimum is the number of requests that a load needs for a meaningful result.
	loadMinimum = 300
	// loadTimeout bounds the wait for these requests.
	loadTimeout = 30 * time.Second
)

// startLoad starts a load on an address once it serves nginx's start page. The load ends with
// finish or with the test.
func startLoad(t *testing.T, namespace, url string) *load {
	t.Helper()
	return startLoadOf(t, namespace, url, page)
}

// startLoadOf starts a load on an address once its response contains a text.
func startLoadOf(t *testing.T, namespace, url, want string) *load {
	t.Helper()
	answers(t, namespace, url, want)
	var clients []func(context.Context, int) error
	for i := range loadClients {
		client, err := suite.reach.client(i%2 == 0 || strings.HasPrefix(url, "https:"))
		must(t, err)
		t.Cleanup(client.CloseIdleConnections)
		clients = append(clients, func(ctx context.Context, _ int) error { return fetchText(ctx, client, url, want) })
	}
	l := &load{repeat.Start(t.Context(), loadPause, clients...), url, time.Now()}
	t.Cleanup(func() { l.Stop() })
	return l
}

// finish stops the load after at least loadMinimum requests, and requires that no request failed.
func (l *load) finish(t *testing.T, namespace, during string) {
	t.Helper()
	enough, cancel := context.WithTimeout(t.Context(), loadTimeout)
	defer cancel()
	must(t, harness.Eventually(enough, pollInterval, func(context.Context) error {
		if made := l.Counts().Total; made < loadMinimum {
			return fmt.Errorf("the clients of the load have made %d requests, want at least %d", made, loadMinimum)
		}
		return nil
	}))
	counts := l.Stop()
	took := time.Since(l.began)
	t.Logf("FIGURE %s: %d requests in %s, %d failed", during, counts.Total, seconds(took), counts.Failed)
	if counts.Failed > 0 {
		if suite.local {
			t.Log(proxyDelay(t.Context()))
		}
		fatal(t, namespace, "%d of %d requests failed, the first after %s: %v, the last after %s: %v", counts.Failed, counts.Total,
			seconds(counts.FirstAfter), counts.First, seconds(counts.LastAfter), counts.Last)
	}
}

// proxyDelay describes how long kube-proxy of the local cluster took to apply the changes of
// endpoints since it started. If it removes a Pod after the Pod's preStop hook has ended,
// connections are refused.
func proxyDelay(ctx context.Context) string {
	code, metrics, err := harness.GetMetrics(ctx, "http://127.0.0.1:10249", "")
	if err != nil || code != http.StatusOK {
		return fmt.Sprintf("the metrics of kube-proxy cannot be read: status %d, %v", code, err)
	}
	buckets, err := harness.Samples(metrics, "kubeproxy_network_programming_duration_seconds_bucket")
	if err != nil {
		return err.Error()
	}
	out := "changes of endpoints that kube-proxy has applied since it started, by seconds:"
	before := 0.0
	for _, bucket := range buckets {
		if bucket.Value > before {
			out += fmt.Sprintf(" up to %s: %.0f;", bucket.Labels["le"], bucket.Value-before)
		}
		before = bucket.Value
	}
	return strings.TrimSuffix(out, ";")
}
