package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestChart checks that the packed chart has the digest of the operator, and that a chart of another
// version or without image.digest is an error.
func TestChart(t *testing.T) {
	p := realRelease(t)
	must(t, os.RemoveAll(chartDir))
	chart := "name: nginx-operator\nversion: " + p.version + "\n"
	values := "image:\n  repository: ghcr.io/example/nginx-operator\n\n  # none\n  digest: \"\"\nother:\n  digest: \"\"\n"
	files(t, map[string]string{chartDir + "/Chart.yaml": chart, chartDir + "/values.yaml": values, chartDir + "/templates/a.yaml": "a"})
	made, err := p.chartFiles("r/me/nginx-operator@sha256:12")
	must(t, err)
	got := untar(t, made["nginx-operator-"+p.version+".tgz"])
	want := map[string]string{
		"nginx-operator/Chart.yaml": chart, "nginx-operator/templates/a.yaml": "a",
		"nginx-operator/values.yaml": "image:\n  repository: r/me/nginx-operator\n\n  # none\n  digest: sha256:12\nother:\n  digest: \"\"\n",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the chart: %s", diff)
	}
	for _, wrong := range []map[string]string{
		{chartDir + "/values.yaml": "image:\n  tag: v1\nother:\n  digest: \"\"\n"},
		{chartDir + "/values.yaml": values, chartDir + "/Chart.yaml": "version: 0.0.1\n"},
	} {
		files(t, wrong)
		if _, err := p.chartFiles("r/me/nginx-operator@sha256:12"); err == nil {
			t.Errorf("%v is packed", wrong)
		}
	}
}

// untar returns the files of a compressed tar archive.
func untar(t *testing.T, archive []byte) map[string]string {
	t.Helper()
	plain, err := gzip.NewReader(bytes.NewReader(archive))
	must(t, err)
	out := map[string]string{}
	for reader := tar.NewReader(plain); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		must(t, err)
		text, err := io.ReadAll(reader)
		must(t, err)
		out[header.Name] = string(text)
		if strings.Contains(header.Name, pluginName) && header.Mode&0o111 == 0 {
			t.Errorf("%s is not executable: %o", header.Name, header.Mode)
		}
	}
}

// unzip returns the files of a zip archive.
func unzip(t *testing.T, archive []byte) map[string]string {
	t.Helper()
	reader, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	must(t, err)
	out := map[string]string{}
	for _, file := range reader.File {
		content, err := file.Open()
		must(t, err)
		text, err := io.ReadAll(content)
		must(t, err)
		out[file.Name] = string(text)
	}
	return out
}
