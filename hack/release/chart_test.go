package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestChart checks that the packed chart has the digest of the operator and is otherwise that of
// the repository, and that a chart of another version is an error.
func TestChart(t *testing.T) {
	p := realRelease(t)
	want := map[string]string{}
	chart, err := readTree(chartDir, operatorName)
	must(t, err)
	for _, file := range chart {
		want[file.name] = string(file.content)
	}
	values := operatorName + "/values.yaml"
	want[values] = strings.Replace(want[values], "  digest: \"\"\n", "  digest: sha256:12\n", 1)
	want[values] = strings.Replace(want[values], "repository: ghcr.io/example/nginx-operator\n", "repository: r/me/nginx-operator\n", 1)
	made, err := p.chartFiles("r/me/nginx-operator@sha256:12")
	must(t, err)
	if diff := cmp.Diff(want, untar(t, made["nginx-operator-"+p.version+".tgz"])); diff != "" {
		t.Errorf("the chart: %s", diff)
	}
	files(t, map[string]string{chartDir + "/Chart.yaml": "version: 0.0.1\n"})
	if _, err := p.chartFiles("r/me/nginx-operator@sha256:12"); err == nil {
		t.Error("a chart of version 0.0.1 is packed")
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
