package e2e

// The pages of the project's releases, for tests that run the commands of a document as they are.
// serveRelease serves the files of dist/release under the URLs from which users download them.

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	// siteHost is the host of releaseURL.
	siteHost = "github.com"
	// siteAddress is reachable only in the network of the cluster's node.
	siteAddress = "127.0.0.1:443"
	releasePath = "/example/nginx-operator/releases"
	releaseURL  = "https://" + siteHost + releasePath
)

// releaseDir returns the directory with the files that a user downloads.
func releaseDir() string { return filepath.Join(suite.repository, "dist", "release") }

// serveRelease makes the files of dist/release available until the tests end, to this process and
// to the commands that it starts:
//
//	https://github.com/example/nginx-operator/releases/download/vX.Y.Z/FILE
//	https://github.com/example/nginx-operator/releases/latest/download/FILE
//
// Clients verify the certificate of github.com, which the cluster's CA issued: the environment of
// the tests sets SSL_CERT_FILE and CURL_CA_BUNDLE. An external cluster's network is not ours.
func serveRelease(t *testing.T) {
	t.Helper()
	if !suite.local {
		t.Skip(siteHost + " can be served only in the network of the local cluster: CLUSTER=local")
	}
	must(t, startSite())
}

// startSite starts the server, and makes its name known, at the first call.
var startSite = sync.OnceValue(func() error {
	pki := os.Getenv("CLUSTER_PKI")
	certificate := filepath.Join(pki, "github.crt")
	if _, err := os.Stat(certificate); err != nil {
		return fmt.Errorf("the cluster has no certificate for %s: run `make cluster-down`, and start it again: %w", siteHost, err)
	}
	listener, err := net.Listen("tcp", siteAddress)
	if err != nil {
		return fmt.Errorf("failed to serve %s: %w", siteHost, err)
	}
	server := &http.Server{Handler: releaseHandler(releaseDir(), suite.version), ReadHeaderTimeout: time.Minute}
	go func() {
		if err := server.ServeTLS(listener, certificate, filepath.Join(pki, "github.key")); !errors.Is(err, http.ErrServerClosed) {
			fmt.Fprintf(os.Stderr, "e2e: %s is no longer served: %v\n", siteHost, err)
		}
	}()
	return nameSite()
})

// nameSite adds the name of the site to /etc/hosts. The tests have a mount namespace of their own,
// so the machine's file does not change.
func nameSite() error {
	const hosts = "/etc/hosts"
	text, err := os.ReadFile(hosts)
	if err != nil {
		return fmt.Errorf("failed to read the host names: %w", err)
	}
	ip, _, _ := strings.Cut(siteAddress, ":")
	file := filepath.Join(suite.dir, "hosts")
	if err := os.WriteFile(file, fmt.Appendf(nil, "%s %s\n%s", ip, siteHost, text), 0o644); err != nil {
		return fmt.Errorf("failed to write the host names: %w", err)
	}
	if out, err := exec.Command("mount", "--bind", file, hosts).CombinedOutput(); err != nil {
		return fmt.Errorf("failed to make %s known: %w: %s", siteHost, err, out)
	}
	return nil
}

// releaseHandler serves the files of a release. Like GitHub, it redirects requests for the latest
// release, and knows no release that is not published.
func releaseHandler(dir, version string) http.Handler {
	download := releasePath + "/download/v" + version + "/"
	mux := http.NewServeMux()
	mux.Handle("GET "+download, http.StripPrefix(download, http.FileServerFS(os.DirFS(dir))))
	mux.HandleFunc("GET "+releasePath+"/latest/download/{file}", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, download+r.PathValue("file"), http.StatusFound) //nolint:gosec // as GitHub does, for tests
	})
	return mux
}

// TestReleaseURLs requires both URLs of a file to lead to it, and other URLs to be unknown.
func TestReleaseURLs(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "install.yaml"), []byte("content"), 0o600))
	handler := releaseHandler(dir, "0.7.0")
	for path, want := range map[string]struct {
		code           int
		body, location string
	}{
		"/download/v0.7.0/install.yaml": {code: http.StatusOK, body: "content"},
		"/latest/download/install.yaml": {code: http.StatusFound, location: releasePath + "/download/v0.7.0/install.yaml"},
		"/download/v0.7.1/install.yaml": {code: http.StatusNotFound},
		"/download/v0.7.0/other.yaml":   {code: http.StatusNotFound},
	} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, releasePath+path, http.NoBody))
		if w.Code != want.code || want.body != "" && w.Body.String() != want.body || w.Header().Get("Location") != want.location {
			t.Errorf("%s: got %d, %q, Location %q", path, w.Code, w.Body, w.Header().Get("Location"))
		}
	}
}
