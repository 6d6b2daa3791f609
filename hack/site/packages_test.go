package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

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
