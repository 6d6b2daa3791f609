package images

import (
	"archive/tar"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// TestLayer checks that parent directories come first, and that of two files with the same name,
// the first one wins.
func TestLayer(t *testing.T) {
	layer, err := newLayer(func(w *layerWriter) error {
		return errors.Join(
			w.text("etc/deep/file", "first"),
			w.text("/etc/deep/../deep/file", "second"),
			w.link("bin/sh", "busybox"),
			w.dir("tmp", 0o1777, 0),
			w.dir("etc", 0o700, 7),
		)
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"etc/ ", "etc/deep/ ", "etc/deep/file first", "bin/ ", "bin/sh busybox", "tmp/ "}
	if diff := cmp.Diff(want, contents(t, layer)); diff != "" {
		t.Error(diff)
	}
}

// contents returns the entries of a layer: name, target of the link, and content.
func contents(t *testing.T, layer v1.Layer) (out []string) {
	t.Helper()
	file, err := layer.Compressed()
	if err != nil {
		t.Fatal(err)
	}
	reader := tar.NewReader(file)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, header.Name+" "+header.Linkname+string(content))
	}
}

// toServer sends all requests to a server of the test.
type toServer struct{ address string }

func (s toServer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Scheme, r.URL.Host = "http", s.address
	return http.DefaultTransport.RoundTrip(r)
}

// TestPush checks that an image has the layers of its base and its own configuration, and the same
// digest under all of its names and after a second push.
func TestPush(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	transport := remote.WithTransport(toServer{server.Listener.Addr().String()})
	write := func(name string) func(*layerWriter) error {
		return func(w *layerWriter) error { return w.text(name, name) }
	}
	base := recipe{names: []string{"ghcr.io/a/base:v1"}, config: v1.Config{User: "0"}, write: write("lower")}
	top := recipe{
		names: []string{"ghcr.io/a/top:v1", "ghcr.io/a/top:v2", "quay.io/b/top:v1"}, base: base.names[0],
		config: v1.Config{User: "101", Cmd: []string{"nginx"}}, write: write("upper"),
	}
	digests := map[v1.Hash]bool{}
	for range 2 {
		for _, r := range []recipe{base, top} {
			if err := r.push(transport); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range top.names {
			image, err := pull(name, transport)
			if err != nil {
				t.Fatal(err)
			}
			digest, err := image.Digest()
			if err != nil {
				t.Fatal(err)
			}
			digests[digest] = true
			file, err := image.ConfigFile()
			if err != nil {
				t.Fatal(err)
			}
			if file.Config.User != "101" || file.OS != "linux" {
				t.Errorf("%s: got %+v", name, file)
			}
			layers, err := image.Layers()
			if err != nil || len(layers) != 2 {
				t.Fatal(layers, err)
			}
			if got := contents(t, layers[0])[0] + contents(t, layers[1])[0]; got != "lower lower"+"upper upper" {
				t.Errorf("%s has %s", name, got)
			}
		}
	}
	if len(digests) != 1 {
		t.Errorf("the same files make different images: %v", digests)
	}
}
