package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func TestDeadLinks(t *testing.T) {
	const root = "http://127.0.0.1:80/"
	got := deadLinks(root, map[string]inspection{
		root + "v1/": {IDs: []string{"start", "ü"}, Links: []string{
			root + "v1/", root + "v1/#start", root + "v1/#", root + "v1/#%C3%BC", root + "v1/a/#b", "https://example.com/",
			root + "v1/missing/", root + "v1/a/#missing",
		}},
		root + "v1/a/": {IDs: []string{"b"}, Links: []string{root + "v1/#%zz"}},
	})
	want := []string{
		root + "v1/ links to " + root + "v1/missing/, which does not exist",
		root + "v1/ links to " + root + "v1/a/#missing, which has no such anchor",
		root + "v1/a/ links to " + root + "v1/#%zz, which has no such anchor",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestMissingFiles(t *testing.T) {
	trees := map[string]fs.FS{
		"v0.2.0": fstest.MapFS{"config/a b.yaml": {}, "README.md": {}}, "v0.1.0": fstest.MapFS{"README.md": {}},
	}
	blob := repository + "/blob/"
	got := missingFiles(map[string]inspection{"page": {Links: []string{
		blob + "v0.2.0/config/a%20b.yaml#L1", blob + "v0.2.0/config", blob + "v0.2.0/config/", blob + "v0.1.0/README.md",
		blob + "v0.1.0/config", repository + "/issues",
	}}}, func(release string) fs.FS { return trees[release] })
	if diff := cmp.Diff([]string{"page links to config, which is not in the tree of v0.1.0"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestUnpack(t *testing.T) {
	var archive bytes.Buffer
	zipped := gzip.NewWriter(&archive)
	files := tar.NewWriter(zipped)
	for _, name := range []string{"package/LICENSE", "package/dist/a.js"} {
		must(t, files.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(name))}))
		if _, err := files.Write([]byte(name)); err != nil {
			t.Fatal(err)
		}
	}
	must(t, files.Close())
	must(t, zipped.Close())
	sum := sha512.Sum512(archive.Bytes())
	p := npmPackage{
		name: "a", version: "1.0.0", integrity: "sha512-" + base64.StdEncoding.EncodeToString(sum[:]),
		files: map[string]string{"dist/a.js": "b.js"},
	}
	got, err := p.unpack(archive.Bytes())
	if diff := cmp.Diff(map[string][]byte{"b.js": []byte("package/dist/a.js")}, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}

	other := p
	other.integrity = "sha512-AAAA"
	if _, err := other.unpack(archive.Bytes()); err == nil || !strings.Contains(err.Error(), "checksum") {
		t.Errorf("another checksum: %v", err)
	}
	missing := p
	missing.files = map[string]string{"dist/b.js": "b.js"}
	if _, err := missing.unpack(archive.Bytes()); err == nil {
		t.Error("a missing file is no error")
	}
}

func TestArguments(t *testing.T) {
	for _, args := range [][]string{
		{}, {"serve"}, {"build", "x"}, {"build", "-base", "docs"}, {"build", "-base", "//example.com/"}, {"check", "-unknown"},
	} {
		if err := run(t.Context(), args); err == nil {
			t.Errorf("%v is accepted", args)
		}
	}
}
