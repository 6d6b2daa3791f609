package main

// This file makes the images of the cluster and pushes them into its registry.

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// imagesPushed reports whether the cluster's own images are in its registry.
func (c *cluster) imagesPushed() bool {
	_, err := os.Stat(c.state("images-pushed"))
	return err == nil
}

// pushClusterImages makes the images that the cluster itself needs, once per cluster.
func (c *cluster) pushClusterImages(ctx context.Context) error {
	if c.imagesPushed() {
		return nil
	}
	packages, err := c.nginxPackages(ctx)
	if err != nil {
		return err
	}
	recipes, err := c.clusterImages(packages)
	if err != nil {
		return err
	}
	for _, r := range recipes {
		c.progress.step("image %s", strings.Join(r.names, " "))
		if err := c.pushRecipe(ctx, r); err != nil {
			return fmt.Errorf("failed to make the image %s: %w", r.names[0], err)
		}
	}
	return writeFile(c.state("images-pushed"), nil, 0o644)
}

func (c *cluster) pushRecipe(ctx context.Context, r recipe) error {
	file, err := os.CreateTemp(c.state(), "layer-")
	if err != nil {
		return fmt.Errorf("failed to make a temporary file: %w", err)
	}
	defer func() {
		_ = file.Close()
		_ = os.Remove(file.Name())
	}()
	sum := sha256.New()
	layer := newLayerWriter(io.MultiWriter(file, sum))
	if err := r.write(layer); err != nil {
		return err
	}
	if err := layer.close(); err != nil {
		return err
	}
	size, err := file.Seek(0, io.SeekCurrent)
	if err != nil {
		return fmt.Errorf("failed to measure a layer: %w", err)
	}
	blob := descriptor{MediaType: mediaTypeLayer, Digest: "sha256:" + hex.EncodeToString(sum.Sum(nil)), Size: size}
	config, manifest, err := imageDocuments(r.config, blob)
	if err != nil {
		return err
	}
	for _, name := range r.names {
		ref, err := parseReference(name)
		if err != nil {
			return err
		}
		if err := c.pushBlob(ctx, ref, blob, io.NewSectionReader(file, 0, size)); err != nil {
			return err
		}
		if err := c.pushBlob(ctx, ref, describe(mediaTypeConfig, config), bytes.NewReader(config)); err != nil {
			return err
		}
		target := registryURL + "/v2/" + ref.path() + "/manifests/" + ref.tag
		if err := c.send(ctx, http.MethodPut, target, mediaTypeManifest, bytes.NewReader(manifest), int64(len(manifest))); err != nil {
			return err
		}
	}
	return nil
}

// pushBlob uploads what the repository does not have.
func (c *cluster) pushBlob(ctx context.Context, ref reference, blob descriptor, content io.Reader) error {
	base := registryURL + "/v2/" + ref.path() + "/blobs/"
	err := c.send(ctx, http.MethodHead, base+blob.Digest, "", nil, 0)
	if err == nil || !isStatus(err, http.StatusNotFound) {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"uploads/", nil)
	if err != nil {
		return fmt.Errorf("failed to make a request: %w", err)
	}
	response, _, err := c.clients.do(request)
	if err != nil {
		return err
	}
	location, err := response.Location()
	if err != nil {
		return fmt.Errorf("failed to start an upload: %w", err)
	}
	query := location.Query()
	query.Set("digest", blob.Digest)
	location.RawQuery = query.Encode()
	return c.send(ctx, http.MethodPut, location.String(), "application/octet-stream", content, blob.Size)
}

func (c *cluster) send(ctx context.Context, method, target, contentType string, body io.Reader, size int64) error {
	if _, err := url.Parse(target); err != nil {
		return fmt.Errorf("failed to parse %s: %w", target, err)
	}
	request, err := http.NewRequestWithContext(ctx, method, target, body)
	if err != nil {
		return fmt.Errorf("failed to make a request: %w", err)
	}
	request.ContentLength = size
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	_, _, err = c.clients.do(request)
	return err
}

// nginxPackages returns the distribution's packages that nginx needs, from the user's cache folder if they are there.
func (c *cluster) nginxPackages(ctx context.Context) ([]string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		// Without a home folder they are fetched again for every cluster.
		cache = c.state()
	}
	dir := filepath.Join(cache, "nginx-operator", "nginx-packages")
	list := func() ([]string, error) {
		files, err := filepath.Glob(filepath.Join(dir, "*.deb"))
		if err != nil {
			return nil, fmt.Errorf("failed to list the packages: %w", err)
		}
		slices.Sort(files)
		return files, nil
	}
	if files, err := list(); err != nil || len(files) > 0 {
		return files, err
	}
	c.progress.step("fetching the packages of nginx")
	// Into a folder aside, so that an interrupted download is not taken for a complete one.
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil { // #nosec G301 -- a cache
		return nil, fmt.Errorf("failed to make the cache folder: %w", err)
	}
	aside, err := os.MkdirTemp(filepath.Dir(dir), "download-")
	if err != nil {
		return nil, fmt.Errorf("failed to make a folder for the packages: %w", err)
	}
	defer func() { _ = os.RemoveAll(aside) }()
	// apt-get gives up its rights for the download and then must be able to write here.
	if err := os.Chmod(aside, 0o777); err != nil { // #nosec G302 -- for the user _apt, for a moment
		return nil, fmt.Errorf("failed to open up the folder for the packages: %w", err)
	}
	if err := fetchNginx(ctx, aside); err != nil {
		// The lists of packages may be missing or old.
		updateErr := aptGet(ctx, "", "update", "-qq")
		if err := fetchNginx(ctx, aside); err != nil {
			return nil, unavailable("the packages of nginx cannot be fetched: %w (update: %v)", err, updateErr)
		}
	}
	if err := os.Rename(aside, dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("failed to keep the packages: %w", err)
	}
	return list()
}

func fetchNginx(ctx context.Context, dir string) error {
	names, err := nginxDependencies(ctx)
	if err != nil {
		return err
	}
	return aptGet(ctx, dir, append([]string{"download", "-qq"}, names...)...)
}

// nginxDependencies returns nginx, its files and the libraries that it is linked with.
func nginxDependencies(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "apt-cache", "depends", "--no-recommends", "--no-suggests", "--no-conflicts", "--no-breaks",
		"--no-replaces", "--no-enhances", "nginx")
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("failed to ask for the dependencies of nginx: %w", commandError(err))
	}
	return parseDependencies(string(out))
}
