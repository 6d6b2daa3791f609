package e2e

// This file sends HTTP requests to instances in the cluster, one at a time and as a load.

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
)

// reach is how requests get into the cluster.
type reach interface {
	// service and pod return the address of an instance, secure that of one which speaks TLS.
	service(namespace, name string, port int32) string
	secure(namespace, name string, port int32) string
	pod(pod *corev1.Pod, port int32) string
	// client returns a new HTTP client that opens connections of its own.
	client(keepAlive bool) (*http.Client, error)
}

// requestTimeout bounds one request. It is above the second after which a lost TCP packet is sent again.
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

// direct is for tests that run in the cluster's network: `bin/cluster exec` puts them there, DNS included.
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
		// #nosec G402 -- the certificates are made by the tests, which look at them where they matter.
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}, nil
}

// proxied goes through the API server, for clusters whose network is elsewhere.
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

// client returns the one client: the connections to the servers are the API server's.
func (p *proxied) client(bool) (*http.Client, error) { return p.http, nil }

// page is what nginx's own start page says, in every image of it.
const page = "Welcome to nginx!"

// fetch asks for nginx's start page once. Any other answer is an error.
func fetch(ctx context.Context, client *http.Client, url string) error {
	return fetchText(ctx, client, url, page)
}

// fetchText asks for a page that has a text in it, once. Any other answer is an error.
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

// readText returns the body of an answer, or its first 64 KiB, and closes it.
func readText(response *http.Response) (string, error) {
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<16))
	if err != nil {
		return "", fmt.Errorf("failed to read the answer of %s: %w", response.Request.URL, err)
	}
	return string(body), nil
}

// serves requires an address to answer, at the first try, with nginx's page on a new connection.
func serves(t *testing.T, namespace, url string) {
	t.Helper()
	if err := fetchOnce(t.Context(), url); err != nil {
		fatal(t, namespace, "nothing serves: %v", err)
	}
}

// serviceDelay bounds how long the nodes may take to follow a Service whose Pods are ready. kube-proxy collects changes
// for a second by default, and takes longer beside other tests; nothing in the API says when it is done.
const serviceDelay = 15 * time.Second

// serviceServes requires a Service to answer as soon as the nodes have followed it, and returns how long that took.
func serviceServes(t *testing.T, namespace, name string, port int32) time.Duration {
	t.Helper()
	return addressServes(t, namespace, suite.reach.service(namespace, name, port))
}

func addressServes(t *testing.T, namespace, url string) time.Duration {
	t.Helper()
	return waitFor(t, namespace, url+" to answer", serviceDelay, func(ctx context.Context) error { return fetchOnce(ctx, url) })
}

// answers requires an address to answer with a text, as soon as the nodes have followed its Service.
func answers(t *testing.T, namespace, url, want string) {
	t.Helper()
	client, err := suite.reach.client(false)
	must(t, err)
	waitFor(t, namespace, url+" to answer "+want, serviceDelay, func(ctx context.Context) error { return fetchText(ctx, client, url, want) })
}

// refuses requires an address not to answer with nginx's page.
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

// load is a number of clients that ask one address again and again, half of them with a new connection each time. Over
// TLS all keep their connections, as browsers do, and make new ones when a Pod ends. With one for each request about one
// in 15,000 was refused, on the TLS port only, though the same Pods refused none on the plain one: there the close of a
// connection meets a socket that is closed already, the client's port is free at once, and the node's connection
// tracking seems to remember the Pod that is gone.
type load struct {
	*harness.Repeated
	url   string
	began time.Time
}

const (
	loadClients = 4
	// loadPause keeps the load from taking the processor away from what is tested.
	loadPause = 10 * time.Millisecond
	// loadMinimum is the number of requests below which no failure would say little.
	loadMinimum = 300
)

// startLoad begins to load an address once it serves nginx's start page. It ends with finish, or with the test.
func startLoad(t *testing.T, namespace, url string) *load {
	t.Helper()
	return startLoadOf(t, namespace, url, page)
}

// startLoadOf begins to load an address once its answer has a text in it.
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
	l := &load{harness.Repeat(t.Context(), loadPause, clients...), url, time.Now()}
	t.Cleanup(func() { l.Stop() })
	return l
}

// finish ends the load and requires that no request failed.
func (l *load) finish(t *testing.T, namespace, during string) {
	t.Helper()
	counts := l.Stop()
	took := time.Since(l.began)
	t.Logf("FIGURE %s: %d requests in %s, %d failed", during, counts.Total, seconds(took), counts.Failed)
	if counts.Failed > 0 {
		fatal(t, namespace, "%d of %d requests failed, the first after %s: %v, the last after %s: %v", counts.Failed, counts.Total,
			seconds(counts.FirstAfter), counts.First, seconds(counts.LastAfter), counts.Last)
	}
	if counts.Total < loadMinimum {
		t.Fatalf("only %d requests were made, that shows nothing", counts.Total)
	}
}
