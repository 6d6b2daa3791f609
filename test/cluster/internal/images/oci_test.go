package images

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
