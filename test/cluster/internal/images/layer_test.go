package images

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

func writeTestLayer(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	w := newLayerWriter(&out)
	for _, err := range []error{
		w.text("etc/deep/file", "first"),
		w.text("/etc/deep/../deep/file", "second"),
		w.link("bin/sh", "busybox"),
		w.dir("tmp", 0o1777, 0),
		w.dir("etc", 0o700, 7),
		w.tar.Close(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return out.Bytes()
}

func TestLayerWriter(t *testing.T) {
	data := writeTestLayer(t)
	var got []string
	reader := tar.NewReader(bytes.NewReader(data))
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, header.Name+" "+header.Linkname+string(content))
		if !header.ModTime.IsZero() && header.ModTime.Unix() != 0 {
			t.Errorf("%s has a time", header.Name)
		}
	}
	// Parent directories come first. If two files have the same name, the first one wins.
	want := []string{"etc/ ", "etc/deep/ ", "etc/deep/file first", "bin/ ", "bin/sh busybox", "tmp/ "}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if !bytes.Equal(data, writeTestLayer(t)) {
		t.Error("the same files make another layer")
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
			if err := r.push(t.TempDir(), transport); err != nil {
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
			if got := contents(t, image); !slices.Equal(got, []string{"lower", "upper"}) {
				t.Errorf("%s has the files %v", name, got)
			}
		}
	}
	if len(digests) != 1 {
		t.Errorf("the same files make different images: %v", digests)
	}
}

// contents returns the content of the file in each layer of an image.
func contents(t *testing.T, image v1.Image) (out []string) {
	t.Helper()
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	for _, layer := range layers {
		file, err := layer.Compressed()
		if err != nil {
			t.Fatal(err)
		}
		reader := tar.NewReader(file)
		if _, err := reader.Next(); err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(reader)
		if err := errors.Join(err, file.Close()); err != nil {
			t.Fatal(err)
		}
		out = append(out, string(content))
	}
	return out
}
