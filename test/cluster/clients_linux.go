package main

// This file talks to the components from inside of the cluster's network.

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"
)

// maxAnswer bounds what is read of an answer.
const maxAnswer = 16 << 20

// clients makes the HTTP client once the certificates are there.
type clients struct {
	layout layout
	mu     sync.Mutex
	client *http.Client
}

// get returns a client that is the cluster's administrator to the API server.
func (c *clients) get() (*http.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client != nil {
		return c.client, nil
	}
	ca, err := os.ReadFile(c.layout.state("pki", "ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("failed to read the CA: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return nil, errors.New("failed to parse the CA")
	}
	cert, err := tls.LoadX509KeyPair(c.layout.state("pki", "admin.crt"), c.layout.state("pki", "admin.key"))
	if err != nil {
		return nil, fmt.Errorf("failed to load the certificate: %w", err)
	}
	c.client = &http.Client{Transport: &http.Transport{
		DialContext:     c.layout.dial,
		TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12},
	}}
	return c.client, nil
}

// do sends a request and returns the answer's body; any status but 2xx is an error.
func (c *clients) do(request *http.Request) (*http.Response, []byte, error) {
	client, err := c.get()
	if err != nil {
		return nil, nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, nil, fmt.Errorf("failed to reach %s: %w", request.URL.Host, err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return nil, nil, fmt.Errorf("failed to read the answer of %s: %w", request.URL, err)
	}
	if response.StatusCode/100 != 2 {
		return response, body, &statusError{code: response.StatusCode, url: request.URL.String(), body: string(body[:min(len(body), 500)])}
	}
	return response, body, nil
}

// statusError is an answer that is not 2xx.
type statusError struct {
	code      int
	url, body string
}

func (e *statusError) Error() string { return fmt.Sprintf("%s answered %d: %s", e.url, e.code, e.body) }

// isStatus reports whether an error is an answer with that status.
func isStatus(err error, code int) bool {
	status := (*statusError)(nil)
	return errors.As(err, &status) && status.code == code
}

// read gets an object of the API server into a struct.
func (c *clients) read(ctx context.Context, path string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, apiServerURL+path, nil)
	if err != nil {
		return fmt.Errorf("failed to make a request: %w", err)
	}
	_, body, err := c.do(request)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("failed to decode %s: %w", path, err)
	}
	return nil
}

// check looks once whether a component works.
func (c *clients) check(ctx context.Context, component component) error {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	if component.socket {
		conn, err := new(net.Dialer).DialContext(ctx, "unix", c.layout.containerdSocket())
		if err != nil {
			return fmt.Errorf("failed to connect: %w", err)
		}
		return conn.Close()
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, component.health, nil)
	if err != nil {
		return fmt.Errorf("failed to make a request: %w", err)
	}
	_, _, err = c.do(request)
	return err
}

// nodeReady looks once whether the node is ready.
func (c *clients) nodeReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	var node struct {
		Status struct {
			Conditions []struct{ Type, Status, Message string }
		}
	}
	if err := c.read(ctx, "/api/v1/nodes/"+nodeName, &node); err != nil {
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

// serviceAccountReady looks once whether Pods can be made in the default namespace.
func (c *clients) serviceAccountReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	var account struct{}
	return c.read(ctx, "/api/v1/namespaces/default/serviceaccounts/default", &account)
}

// lookup asks the cluster's DNS for a name once.
func (c *clients) lookup(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return c.layout.dial(ctx, network, net.JoinHostPort(nodeIP, "53"))
	}}
	addresses, err := resolver.LookupHost(ctx, "kubernetes.default.svc."+clusterDomain+".")
	if err != nil {
		return fmt.Errorf("failed to look up the API server: %w", err)
	}
	if !slices.Contains(addresses, kubernetesIP) {
		return fmt.Errorf("failed to look up the API server: got %v", addresses)
	}
	return nil
}
