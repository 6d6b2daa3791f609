package registry

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/example/nginx-operator/test/cluster/internal/host"
	"github.com/example/nginx-operator/test/cluster/internal/layout"
)

// GatewayAddress is the address of a registry whose name has no port.
const GatewayAddress = layout.NodeIP + ":443"

// GatewayCommand is the hidden command that runs the gateway.
const GatewayCommand = "gateway"

// dockerHubHosts are the host names that clients use for docker.io.
var dockerHubHosts = []string{"registry-1.docker.io", "index.docker.io"}

// GatewayHosts returns all host names of the gateway.
func GatewayHosts() []string { return slices.Concat(Mirrored, dockerHubHosts) }

// rewriteRegistryPath maps the path of a request for a public registry to the path in the cluster's
// registry, where the repository starts with the name of the public registry.
func rewriteRegistryPath(name, path string) (string, error) {
	if hostname, _, err := net.SplitHostPort(name); err == nil {
		name = hostname
	}
	if slices.Contains(dockerHubHosts, name) {
		name = "docker.io"
	}
	rest, ok := strings.CutPrefix(path, "/v2/")
	if ok && rest == "" {
		return path, nil // a check whether this is a registry
	}
	if !ok || !slices.Contains(Mirrored, name) {
		return "", fmt.Errorf("no registry here for %s%s", name, path)
	}
	return "/v2/" + name + "/" + rest, nil
}

// gatewayHandler forwards read requests. It rejects pushes: they must use the registry's own name.
func gatewayHandler(transport http.RoundTripper) http.Handler {
	target := &url.URL{Scheme: "https", Host: layout.RegistryAddress}
	proxy := &httputil.ReverseProxy{
		Transport: transport,
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			http.Error(w, "push to "+layout.RegistryAddress+"/"+r.Host, http.StatusMethodNotAllowed)
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

// ServeGateway runs the gateway, which is one of the node's components.
func ServeGateway(ctx context.Context) error {
	pool, err := host.CertPool(filepath.Join(layout.NodePKIDir, "ca.crt"))
	if err != nil {
		return err
	}
	server := &http.Server{
		Addr:              GatewayAddress,
		Handler:           gatewayHandler(&http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}),
		ReadHeaderTimeout: 10 * time.Second,
	}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	err = server.ListenAndServeTLS(filepath.Join(layout.NodePKIDir, "registry.crt"), filepath.Join(layout.NodePKIDir, "registry.key"))
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("failed to serve: %w", err)
}
