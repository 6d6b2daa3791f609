package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// npmPackage is a package of npm, of which the site needs single files. It is not installed: none
// of its scripts runs, and it gets no dependencies.
type npmPackage struct {
	name, version string
	// integrity is the checksum in the registry: npm view NAME@VERSION dist.integrity.
	integrity string
	// files maps paths in the package to names in the site's directory assets.
	files map[string]string
}

var sitePackages = []npmPackage{
	{
		name: "mermaid", version: "11.17.2",
		integrity: "sha512-V6K3C8EBdEsPFZXSKMJe6ppQOENxuHARr9GvHX4hh47lAbhMRD9qf4oEK7LoaRQxULMa80/qt5gHO73aCleBBg==",
		files:     map[string]string{"dist/mermaid.min.js": "mermaid.min.js", "LICENSE": "mermaid.LICENSE"},
	},
	{
		name: "minisearch", version: "7.2.0",
		integrity: "sha512-dqT2XBYUOZOiC5t2HRnwADjhNS2cecp9u+TJRiJ1Qp/f5qjkeT5APcGPjHw+bz89Ms8Jp+cG4AlE+QZ/QnDglg==",
		files:     map[string]string{"dist/umd/index.js": "minisearch.js", "LICENSE.txt": "minisearch.LICENSE"},
	},
	{
		name: "@fontsource-variable/inter", version: "5.3.0",
		integrity: "sha512-OupL48va4JNofb97w6NYeF9S7W/kHNKM0Er8Dem5nqi4jeOLrVJDoE8tZEpnMJmtkvNbB1EIPPwHcdkF6b1oUA==",
		files:     map[string]string{"files/inter-latin-wght-normal.woff2": "inter.woff2", "LICENSE": "inter.LICENSE"},
	},
	{
		name: "@fontsource-variable/jetbrains-mono", version: "5.3.0",
		integrity: "sha512-F32xpS2NsGYoQi2ADSkKTgpJj7ozajsGgDJ8woTnqjmIB+dxDIqImjl4pXZVEExu8UFZ2ndhmX18EBS/hdz3Lw==",
		files: map[string]string{
			"files/jetbrains-mono-latin-wght-normal.woff2": "jetbrains-mono.woff2", "LICENSE": "jetbrains-mono.LICENSE",
		},
	},
}

// accessibility is the engine with which check evaluates accessibility. It is not part of the site.
var accessibility = npmPackage{
	name: "axe-core", version: "4.14.1",
	integrity: "sha512-FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ==",
	files:     map[string]string{"axe.min.js": "axe.min.js"},
}

// maxFile is the largest file that is read from a package.
const maxFile = 16 << 20

// read returns the files of a package, by name in the directory assets. It downloads the package
// if it is not in dist/npm.
func (p npmPackage) read(ctx context.Context) (map[string][]byte, error) {
	name := strings.NewReplacer("@", "", "/", "-").Replace(p.name) + "-" + p.version + ".tgz"
	archive, err := os.ReadFile(filepath.Join(packageDir, name))
	if errors.Is(err, os.ErrNotExist) {
		if err := os.MkdirAll(packageDir, 0o755); err != nil {
			return nil, fmt.Errorf("failed to create the directory of packages: %w", err)
		}
		cmd := exec.CommandContext(ctx, "npm", "pack", "--silent", "--ignore-scripts", "--pack-destination", packageDir, p.name+"@"+p.version)
		cmd.Stderr = os.Stderr
		if err := cmd.Run(); err != nil {
			return nil, fmt.Errorf("failed to download %s with npm: %w", p.name, err)
		}
		archive, err = os.ReadFile(filepath.Join(packageDir, name))
	}
	if err != nil {
		return nil, fmt.Errorf("failed to read the package: %w", err)
	}
	return p.unpack(archive)
}

// unpack verifies the checksum of a package, and returns its files.
func (p npmPackage) unpack(archive []byte) (map[string][]byte, error) {
	sum := sha512.Sum512(archive)
	if got := "sha512-" + base64.StdEncoding.EncodeToString(sum[:]); got != p.integrity {
		return nil, fmt.Errorf("%s %s has the checksum %s, want %s; remove %s and retry", p.name, p.version, got, p.integrity, packageDir)
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, fmt.Errorf("failed to unpack %s: %w", p.name, err)
	}
	out, reader := map[string][]byte{}, tar.NewReader(unzipped)
	for len(out) < len(p.files) {
		header, err := reader.Next()
		if err != nil {
			return nil, fmt.Errorf("failed to find all of %v in %s: %w", p.files, p.name, err)
		}
		target, found := p.files[strings.TrimPrefix(header.Name, "package/")]
		if !found {
			continue
		}
		if header.Size > maxFile {
			return nil, fmt.Errorf("%s in %s has %d bytes, more than %d", header.Name, p.name, header.Size, maxFile)
		}
		if out[target], err = io.ReadAll(io.LimitReader(reader, maxFile)); err != nil {
			return nil, fmt.Errorf("failed to unpack %s: %w", p.name, err)
		}
	}
	return out, nil
}
