package main

// This file holds the gateway: inside of the cluster's network the public registries' names lead to the cluster's own
// registry. The node does not need it, its containerd knows mirrors. But clients such as operator-sdk and opm, which know
// none, then work with the names that users type.

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// gatewayAddress is where clients expect a registry that is named without a port.
const gatewayAddress = nodeIP + ":443"

// gatewayCommand is the hidden command that is the gateway.
const gatewayCommand = "gateway"

// dockerHubHosts are the names by which clients reach docker.io.
var dockerHubHosts = []string{"registry-1.docker.io", "index.docker.io"}

// gatewayHosts are all names for which the gateway answers.
func gatewayHosts() []string { return slices.Concat(mirroredRegistries, dockerHubHosts) }

// rewriteRegistryPath maps a request to a public registry to the path in the cluster's registry: there the name of the
// registry is the first part of the repository.
func rewriteRegistryPath(host, path string) (string, error) {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if slices.Contains(dockerHubHosts, host) {
		host = "docker.io"
	}
	rest, ok := strings.CutPrefix(path, "/v2/")
	if ok && rest == "" {
		return path, nil // only asks whether this is a registry
	}
	if !ok || !slices.Contains(mirroredRegistries, host) {
		return "", fmt.Errorf("no registry here for %s%s", host, path)
	}
	return "/v2/" + host + "/" + rest, nil
}

// gatewayHandler forwards what reads; pushes go to the registry by its own name.
func gatewayHandler(transport http.RoundTripper) http.Handler {
	target := &url.URL{Scheme: "https", Host: registryAddress}
	proxy := &httputil.ReverseProxy{
		Transport: transport,
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			http.Error(w, "push to "+registryAddress+"/"+r.Host, http.StatusMethodNotAllowed)
			return
		}
		path, err := rewriteRegistryPath(r.Host, r.URL.Path)
		if err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		r.URL.Path = path
		proxy.ServeHTTP(w, r)
	})
}

// serveGateway is one of the node's components.
func serveGateway(ctx context.Context) error {
	ca, err := os.ReadFile(filepath.Join(nodePKIDir, "ca.crt"))
	if err != nil {
		return fmt.Errorf("failed to read the CA: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return errors.New("failed to parse the CA")
	}
	server := &http.Server{
		Addr:              gatewayAddress,
		Handler:           gatewayHandler(&http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}),
		ReadHeaderTimeout: 10 * time.Second,
	}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	err = server.ListenAndServeTLS(filepath.Join(nodePKIDir, "registry.crt"), filepath.Join(nodePKIDir, "registry.key"))
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("failed to serve: %w", err)
}
