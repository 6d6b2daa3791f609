package images

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/example/nginx-operator/test/cluster/internal/debian"
	"github.com/example/nginx-operator/test/cluster/internal/host"
	"github.com/example/nginx-operator/test/cluster/internal/layout"
	"github.com/example/nginx-operator/test/cluster/internal/node"
	"github.com/example/nginx-operator/test/cluster/internal/registry"
	"github.com/example/nginx-operator/test/cluster/internal/tools"
)

// Store builds images and pushes them into the cluster's registry.
type Store struct {
	Node     *node.Node
	Progress *host.Progress
}

// HasOwn reports whether the registry has the cluster's own images.
func (s Store) HasOwn() bool {
	_, err := os.Stat(s.Node.State("images-pushed"))
	return err == nil
}

// PushOwn creates and pushes the images that the cluster itself needs, once per cluster.
func (s Store) PushOwn(ctx context.Context) error {
	if s.HasOwn() {
		return nil
	}
	packages, err := debian.Nginx(ctx, debian.DefaultSuite, s.Node.State(), s.Progress)
	if err != nil {
		return err
	}
	recipes, err := clusterImages(s.Node.Layout, packages)
	if err != nil {
		return err
	}
	if err := s.pushRecipes(ctx, recipes); err != nil {
		return err
	}
	return host.WriteFile(s.Node.State("images-pushed"), nil, 0o644)
}

// PushNginx creates and pushes the images with the nginx of Debian suites.
func (s Store) PushNginx(ctx context.Context, suites []string) error {
	if err := s.Node.Running(); err != nil {
		return err
	}
	for _, suite := range suites {
		packages, err := debian.Nginx(ctx, suite, s.Node.State(), s.Progress)
		if err != nil {
			return err
		}
		if err := s.pushRecipes(ctx, []recipe{nginxImage(packages, NginxOf(suite))}); err != nil {
			return err
		}
	}
	return nil
}

// PushOLMv1 builds the programs of OLM v1 and cert-manager, and pushes their images.
func (s Store) PushOLMv1(ctx context.Context) error {
	recipes, programs, err := olmV1Images(s.Node.Layout)
	if err != nil {
		return err
	}
	if err := tools.Build(ctx, s.Node.Layout, programs, s.Progress); err != nil {
		return err
	}
	return s.pushRecipes(ctx, recipes)
}

func (s Store) pushRecipes(ctx context.Context, recipes []recipe) error {
	for _, r := range recipes {
		s.Progress.Step("image %s", strings.Join(r.names, " "))
		if err := s.pushRecipe(ctx, r); err != nil {
			return fmt.Errorf("failed to make the image %s: %w", r.names[0], err)
		}
	}
	return nil
}

func (s Store) pushRecipe(ctx context.Context, r recipe) error {
	file, err := os.CreateTemp(s.Node.State(), "layer-")
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
	if err := layer.tar.Close(); err != nil {
		return fmt.Errorf("failed to finish a layer: %w", err)
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
		ref, err := registry.Parse(name)
		if err != nil {
			return err
		}
		if err := s.pushBlob(ctx, ref, blob, io.NewSectionReader(file, 0, size)); err != nil {
			return err
		}
		if err := s.pushBlob(ctx, ref, describe(mediaTypeConfig, config), bytes.NewReader(config)); err != nil {
			return err
		}
		target := layout.RegistryURL + "/v2/" + ref.Path() + "/manifests/" + ref.Tag
		if _, err := s.send(ctx, http.MethodPut, target, mediaTypeManifest, bytes.NewReader(manifest), int64(len(manifest))); err != nil {
			return err
		}
	}
	return nil
}

// pushBlob uploads a blob if the repository does not have it.
func (s Store) pushBlob(ctx context.Context, ref registry.Reference, blob descriptor, content io.Reader) error {
	base := layout.RegistryURL + "/v2/" + ref.Path() + "/blobs/"
	_, err := s.send(ctx, http.MethodHead, base+blob.Digest, "", nil, 0)
	if err == nil || !node.IsStatus(err, http.StatusNotFound) {
		return err
	}
	response, err := s.send(ctx, http.MethodPost, base+"uploads/", "", nil, 0)
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
	_, err = s.send(ctx, http.MethodPut, location.String(), "application/octet-stream", content, blob.Size)
	return err
}

func (s Store) send(ctx context.Context, method, target, contentType string, body io.Reader, size int64) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, target, body)
	if err != nil {
		return nil, fmt.Errorf("failed to make a request: %w", err)
	}
	request.ContentLength = size
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	response, _, err := s.Node.Do(request)
	return response, err
}
