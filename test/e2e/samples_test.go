package e2e

// The recipes of config/samples. Each is applied without changes, becomes ready, and answers the
// requests in its comment.

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/docs"
)

// certManager is the prefix of an API group that the test cluster does not have. The tests create
// the certificates instead.
const certManager = "cert-manager.io/"

func testSamples(t *testing.T) {
	namespace := newNamespace(t, restricted)
	files, err := filepath.Glob(filepath.Join(suite.repository, "config", "samples", "*.yaml"))
	must(t, err)
	samples := map[string][]docs.Request{}
	for _, file := range files {
		// testSample applies the two basic samples through their kustomization.
		if name := filepath.Base(file); name != "kustomization.yaml" && !strings.HasPrefix(name, "operator_") {
			samples[name] = applySample(t, namespace, file)
		}
	}
	for name, requests := range samples {
		t.Run(name, func(t *testing.T) {
			for _, request := range requests {
				sampleAnswers(t, namespace, request)
			}
		})
	}
}

// applySample creates the objects of a sample and the certificates that it references, and returns
// the requests in its comment.
func applySample(t *testing.T, namespace, file string) []docs.Request {
	t.Helper()
	text, err := os.ReadFile(file)
	must(t, err)
	requests, err := docs.Requests(string(text))
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	for _, document := range bytes.Split(text, []byte("\n---\n")) {
		object := &unstructured.Unstructured{}
		must(t, yaml.UnmarshalStrict(document, &object.Object))
		if strings.HasPrefix(object.GetAPIVersion(), certManager) {
			continue
		}
		object.SetNamespace(namespace)
		if object.GetKind() == "NginxOperator" {
			declared := &v1alpha2.NginxOperator{}
			must(t, yaml.UnmarshalStrict(document, declared))
			for _, certificate := range declared.Spec.TLS {
				newSecret(t, namespace, certificate.SecretName)
			}
		}
		must(t, suite.admin.Create(t.Context(), object))
	}
	return requests
}

// sampleAnswers waits until the target of a request is ready and returns the response that the
// sample describes. Some responses need several requests: a rate limit, a cache hit, or the smaller
// share of a canary.
func sampleAnswers(t *testing.T, namespace string, request docs.Request) {
	t.Helper()
	name := request.URL.Hostname()
	object := newObject(namespace, name, 1)
	waitFor(t, namespace, name+" to be ready", installPatience, func(ctx context.Context) error { return ready(ctx, object) })
	requestAnswers(t, namespace, request)
}

// requestAnswers is sampleAnswers for a target that may be blocked.
func requestAnswers(t *testing.T, namespace string, request docs.Request) {
	t.Helper()
	client := sampleClient(t, namespace, request)
	what := fmt.Sprintf("%s to answer %d %s", request.URL, request.Status, request.Text)
	waitFor(t, namespace, what, patience, func(ctx context.Context) error {
		asked, err := request.NewRequest(ctx)
		if err != nil {
			return err
		}
		response, err := client.RoundTrip(asked)
		if err != nil {
			return err
		}
		body, err := readText(response)
		if err != nil {
			return err
		}
		return request.Check(response, body)
	})
}

// sampleClient returns an HTTP transport to the Service in the request, as a Pod in the same
// namespace would reach it.
func sampleClient(t *testing.T, namespace string, request docs.Request) http.RoundTripper {
	t.Helper()
	port, err := request.Port()
	must(t, err)
	name := request.URL.Hostname()
	address := net.JoinHostPort(fmt.Sprintf("%s.%s.svc.cluster.local", name, namespace), strconv.Itoa(int(port)))
	if !suite.local {
		address = strings.TrimPrefix(forward(t, namespace, "service/"+name, int(port)), "https://")
	}
	client := &http.Transport{
		DisableKeepAlives:     true,
		ResponseHeaderTimeout: requestTimeout,
		// #nosec G402 -- the certificate was made here.
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{Timeout: requestTimeout}).DialContext(ctx, network, address)
		},
	}
	t.Cleanup(client.CloseIdleConnections)
	return client
}
