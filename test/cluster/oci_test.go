package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"
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
		w.close(),
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
	// Folders come before what is in them, and of two files of a name the first one counts.
	want := []string{"etc/ ", "etc/deep/ ", "etc/deep/file first", "bin/ ", "bin/sh busybox", "tmp/ "}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if !bytes.Equal(data, writeTestLayer(t)) {
		t.Error("the same files make another layer")
	}
}

func TestImageDocuments(t *testing.T) {
	layer := descriptor{MediaType: mediaTypeLayer, Digest: "sha256:abc", Size: 3}
	config, document, err := imageDocuments(imageConfig{User: "101", Cmd: []string{"nginx"}}, layer)
	if err != nil {
		t.Fatal(err)
	}
	var m manifest
	if err := json.Unmarshal(document, &m); err != nil {
		t.Fatal(err)
	}
	if m.Config != describe(mediaTypeConfig, config) || len(m.Layers) != 1 || m.Layers[0] != layer {
		t.Errorf("got %+v", m)
	}
	var c struct {
		Config imageConfig
		RootFS struct {
			DiffIDs []string `json:"diff_ids"`
		}
	}
	if err := json.Unmarshal(config, &c); err != nil {
		t.Fatal(err)
	}
	if c.Config.User != "101" || len(c.RootFS.DiffIDs) != 1 || c.RootFS.DiffIDs[0] != layer.Digest {
		t.Errorf("got %+v", c)
	}
}

func TestClusterImages(t *testing.T) {
	recipes, err := testRepo(t).clusterImages(nil)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, r := range recipes {
		for _, name := range r.names {
			ref, err := parseReference(name)
			if err != nil || ref.String() != name {
				t.Errorf("%s is not a full name: %v", name, err)
			}
			if seen[name] {
				t.Errorf("%s is there twice", name)
			}
			seen[name] = true
		}
		if r.write == nil {
			t.Errorf("%v has no content", r.names)
		}
	}
	for _, name := range []string{
		pauseImage,
		"docker.io/library/busybox:1.36",
		"docker.io/nginxinc/nginx-unprivileged:1.28.0",
		"docker.io/nginxinc/nginx-unprivileged:1.29.0",
		opmImage + ":latest",
	} {
		if !seen[name] {
			t.Errorf("%s is missing", name)
		}
	}
}

func TestSkipNginxFile(t *testing.T) {
	for name, want := range map[string]bool{
		"/usr/sbin/nginx":                         false,
		"/etc/nginx/mime.types":                   false,
		"/lib/x86_64-linux-gnu/libc.so.6":         false,
		"/usr/share/doc":                          true,
		"/usr/share/doc/nginx/README":             true,
		"/usr/share/documents":                    false,
		"/etc/nginx/sites-enabled/default":        true,
		"/usr/lib/x86_64-linux-gnu/gconv/BIG5.so": true,
		"/lib/x86_64-linux-gnu/libnss_files.so.2": true,
		"/usr/share/nginx/html/index.html":        false,
	} {
		if got := skipNginxFile(name); got != want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}
