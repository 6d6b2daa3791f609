package main

import (
	"context"
	"encoding/json"
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	spdxMediaType   = "application/spdx+json"
	inTotoMediaType = "application/vnd.in-toto+json"
	// emptyMediaType is the media type of an empty configuration. See
	// https://github.com/opencontainers/image-spec/blob/v1.1.1/manifest.md
	emptyMediaType = "application/vnd.oci.empty.v1+json"
	emptyConfig    = "{}"
	// titleAnnotation holds the file name under which clients store a layer.
	titleAnnotation = "org.opencontainers.image.title"
)

// artifact is a document in a registry: a manifest with an empty configuration, and the document as
// its only layer.
type artifact struct {
	manifest []byte
	layer    v1.Layer
}

func (a artifact) RawManifest() ([]byte, error)                           { return a.manifest, nil }
func (a artifact) RawConfigFile() ([]byte, error)                         { return []byte(emptyConfig), nil }
func (a artifact) MediaType() (types.MediaType, error)                    { return types.OCIManifestSchema1, nil }
func (a artifact) LayerByDigest(v1.Hash) (partial.CompressedLayer, error) { return a.layer, nil }

// newArtifact returns an artifact with one file. It refers to the image that the file describes.
func newArtifact(subject v1.Descriptor, file, mediaType string, content []byte) (v1.Image, error) {
	layer := static.NewLayer(content, types.MediaType(mediaType))
	described, err := partial.Descriptor(layer)
	if err != nil {
		return nil, fmt.Errorf("failed to describe the document: %w", err)
	}
	described.Annotations = map[string]string{titleAnnotation: file}
	config, err := partial.Descriptor(static.NewLayer([]byte(emptyConfig), emptyMediaType))
	if err != nil {
		return nil, fmt.Errorf("failed to describe the empty configuration: %w", err)
	}
	manifest, err := json.Marshal(v1.Manifest{
		SchemaVersion: 2,
		MediaType:     types.OCIManifestSchema1,
		ArtifactType:  mediaType,
		Config:        *config,
		Layers:        []v1.Descriptor{*described},
		Subject:       &v1.Descriptor{MediaType: subject.MediaType, Digest: subject.Digest, Size: subject.Size},
	})
	if err != nil {
		return nil, fmt.Errorf("failed to encode the manifest: %w", err)
	}
	return partial.CompressedToImage(artifact{manifest: manifest, layer: layer})
}

// attach pushes a document to the image's repository, as a referrer of the image's digest. If the
// registry has no referrers API, the tag sha256-HEX lists the referrers. attach returns the
// artifact's digest.
func (l location) attach(ctx context.Context, to image, file, mediaType string, content []byte) (v1.Hash, error) {
	made, err := newArtifact(to.descriptor, file, mediaType, content)
	if err != nil {
		return v1.Hash{}, err
	}
	digest, err := made.Digest()
	if err != nil {
		return v1.Hash{}, fmt.Errorf("failed to make the artifact: %w", err)
	}
	ref, err := l.reference(to.repository() + "@" + digest.String())
	if err != nil {
		return v1.Hash{}, err
	}
	if err := remote.Write(ref, made, options(ctx)...); err != nil {
		return v1.Hash{}, fmt.Errorf("failed to push %s beside %s: %w", mediaType, to.tag, err)
	}
	return digest, nil
}

// referrers returns the artifacts that refer to an image.
func (l location) referrers(ctx context.Context, image string) ([]v1.Descriptor, error) {
	ref, err := l.reference(image)
	if err != nil {
		return nil, err
	}
	digest, err := l.digest(ctx, image)
	if err != nil {
		return nil, err
	}
	index, err := remote.Referrers(ref.Context().Digest(digest.String()), options(ctx)...)
	if err != nil {
		return nil, fmt.Errorf("failed to list what refers to %s: %w", image, err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, fmt.Errorf("failed to list what refers to %s: %w", image, err)
	}
	return manifest.Manifests, nil
}
