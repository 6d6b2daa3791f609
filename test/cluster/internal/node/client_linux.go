package node

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/example/nginx-operator/test/cluster/internal/components"
	"github.com/example/nginx-operator/test/cluster/internal/host"
	"github.com/example/nginx-operator/test/cluster/internal/layout"
)

// healthTimeout bounds one check of a component or one read of an object.
const healthTimeout = 2 * time.Second

// maxBody bounds the size of a response body.
const maxBody = 16 << 20

// httpClient returns a client with the administrator's certificate. It returns an error until the
// certificates exist.
func (n *Node) httpClient() (*http.Client, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.client != nil {
		return n.client, nil
	}
	pool, err := host.CertPool(n.PKI("ca.crt"))
	if err != nil {
		return nil, err
	}
	cert, err := tls.LoadX509KeyPair(n.PKI("admin.crt"), n.PKI("admin.key"))
	if err != nil {
		return nil, fmt.Errorf("failed to load the certificate: %w", err)
	}
	n.client = &http.Client{Transport: &http.Transport{
		DialContext:     n.dial,
		TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12},
	}}
	return n.client, nil
}

// Transport returns a transport into the cluster's network.
func (n *Node) Transport() (http.RoundTripper, error) {
	client, err := n.httpClient()
	if err != nil {
		return nil, err
	}
	return client.Transport, nil
}

// do sends a request and returns the body of the response. Any status except 2xx is an error.
func (n *Node) do(request *http.Request) ([]byte, error) {
	client, err := n.httpClient()
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("failed to reach %s: %w", request.URL.Host, err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBody))
	if err != nil {
		return nil, fmt.Errorf("failed to read the response of %s: %w", request.URL, err)
	}
	if response.StatusCode/100 != 2 {
		return nil, fmt.Errorf("%s answered %d: %s", request.URL, response.StatusCode, body[:min(len(body), 500)])
	}
	return body, nil
}

// Get reads an object from the API server into a struct.
func (n *Node) Get(ctx context.Context, path string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, layout.APIServerURL+path, nil)
	if err != nil {
		return fmt.Errorf("failed to make a request: %w", err)
	}
	body, err := n.do(request)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("failed to decode %s: %w", path, err)
	}
	return nil
}

// Check checks once whether a component works.
func (n *Node) Check(ctx context.Context, component components.Component) error {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	if component.Socket {
		conn, err := new(net.Dialer).DialContext(ctx, "unix", n.ContainerdSocket())
		if err != nil {
			return fmt.Errorf("failed to connect: %w", err)
		}
		return conn.Close()
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, component.Health, nil)
	if err != nil {
		return fmt.Errorf("failed to make a request: %w", err)
	}
	_, err = n.do(request)
	return err
}

// Ready checks once whether the node is ready.
func (n *Node) Ready(ctx context.Context) error {
	var node struct {
		Status struct {
			Conditions []struct{ Type, Status, Message string }
		}
	}
	if err := n.Get(ctx, "/api/v1/nodes/"+layout.NodeName, &node); err != nil {
		return err
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == "Ready" {
			if condition.Status == "True" {
				return nil
			}
			return fmt.Errorf("the node is not ready: %s", condition.Message)
		}
	}
	return errors.New("the node is not ready: it has not said so yet")
}

// ServiceAccountReady checks once whether Pods can be created in the default namespace.
func (n *Node) ServiceAccountReady(ctx context.Context) error {
	return n.Get(ctx, "/api/v1/namespaces/default/serviceaccounts/default", &struct{}{})
}

// DNSReady checks once whether the cluster's DNS resolves the API server.
func (n *Node) DNSReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return n.dial(ctx, network, net.JoinHostPort(layout.NodeIP, "53"))
	}}
	addresses, err := resolver.LookupHost(ctx, "kubernetes.default.svc."+layout.ClusterDomain+".")
	if err != nil {
		return fmt.Errorf("failed to look up the API server: %w", err)
	}
	if !slices.Contains(addresses, layout.KubernetesIP) {
		return fmt.Errorf("failed to look up the API server: got %v", addresses)
	}
	return nil
}
