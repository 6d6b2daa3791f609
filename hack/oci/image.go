package main

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/package-url/packageurl-go"
)

// image is the content of a tag: a single image, or an index with one image per platform.
type image struct {
	tag        name.Tag
	descriptor v1.Descriptor
	// base is the base image, or nil for scratch.
	base     *baseImage
	variants []variant
}

// baseImage is a base image, with the digest in its name, or else the current digest of its tag.
type baseImage struct {
	tag    name.Tag
	digest v1.Hash
}

// variant is the image for one platform.
type variant struct {
	platform v1.Platform
	digest   v1.Hash
	layers   []layer
	// fromBase is the number of layers that come from the base image. They are the first layers.
	fromBase int
}

// layer is a layer in the registry, with the Go programs in it.
type layer struct {
	digest   v1.Hash
	programs []program
}

// program is a Go program with its embedded build information.
type program struct {
	path   string
	sha256 string
	info   *buildinfo.BuildInfo
}

// repository returns the name of an image without its tag, as the caller wrote it. The library's
// own method returns index.docker.io for docker.io.
func repository(tag name.Tag) string { return strings.TrimSuffix(tag.String(), ":"+tag.TagStr()) }

func (i image) repository() string { return repository(i.tag) }

// short returns the last path element of the image's name.
func (i image) short() string { return path.Base(i.repository()) }

// ociURL returns the package URL of an image, or of its variant for a platform if platform is set.
func ociURL(tag name.Tag, digest v1.Hash, platform string) string {
	qualifiers := map[string]string{"repository_url": repository(tag), "tag": tag.TagStr()}
	if platform != "" {
		qualifiers["arch"] = strings.TrimPrefix(platform, "linux/")
	}
	return packageurl.NewPackageURL(packageurl.TypeOCI, "", path.Base(repository(tag)), digest.String(),
		packageurl.QualifiersFromMap(qualifiers), "").ToString()
}

// location is a registry that stores images under their full names. If it is "", each image comes
// from the registry in its own name.
type location string

func (l location) reference(image string) (name.Reference, error) {
	if l != "" {
		image = string(l) + "/" + image
	}
	ref, err := name.ParseReference(image)
	if err != nil {
		return nil, fmt.Errorf("failed to read the name of an image: %w", err)
	}
	return ref, nil
}

// options returns the registry options. The credentials are the ones from docker, podman, or
// buildah login.
func options(ctx context.Context) []remote.Option {
	return []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
}

func (l location) get(ctx context.Context, image string, more ...remote.Option) (*remote.Descriptor, error) {
	ref, err := l.reference(image)
	if err != nil {
		return nil, err
	}
	found, err := remote.Get(ref, append(options(ctx), more...)...)
	if err != nil {
		return nil, fmt.Errorf("failed to find %s in its registry: %w", image, err)
	}
	return found, nil
}

// digest returns the current digest of an image's tag.
func (l location) digest(ctx context.Context, image string) (v1.Hash, error) {
	found, err := l.get(ctx, image)
	if err != nil {
		return v1.Hash{}, err
	}
	return found.Digest, nil
}

// read reads an image with all its layers. base is the name of its base image, or "" for scratch.
func (l location) read(ctx context.Context, tag name.Tag, base string) (image, error) {
	found, err := l.get(ctx, tag.String())
	if err != nil {
		return image{}, err
	}
	out := image{tag: tag, descriptor: found.Descriptor}
	if base != "" {
		if out.base, err = l.findBase(ctx, base); err != nil {
			return image{}, err
		}
	}
	images, err := perPlatform(found)
	if err != nil {
		return image{}, fmt.Errorf("failed to read %s: %w", tag, err)
	}
	for _, one := range images {
		read, err := l.readVariant(ctx, one, base)
		if err != nil {
			return image{}, fmt.Errorf("failed to read %s: %w", tag, err)
		}
		out.variants = append(out.variants, read)
	}
	return out, nil
}

func (l location) findBase(ctx context.Context, base string) (*baseImage, error) {
	tagged, _, _ := strings.Cut(base, "@")
	tag, err := name.NewTag(tagged, name.StrictValidation)
	if err != nil {
		return nil, fmt.Errorf("failed to read the name of the base image: %w", err)
	}
	digest, err := l.digest(ctx, base)
	return &baseImage{tag: tag, digest: digest}, err
}

// perPlatform returns the images of an index. If found is a single image, it returns only that
// image.
func perPlatform(found *remote.Descriptor) ([]v1.Image, error) {
	if !found.MediaType.IsIndex() {
		only, err := found.Image()
		return []v1.Image{only}, err
	}
	index, err := found.ImageIndex()
	if err != nil {
		return nil, err
	}
	return partial.FindImages(index, func(v1.Descriptor) bool { return true })
}

func (l location) readVariant(ctx context.Context, from v1.Image, base string) (variant, error) {
	digest, digestErr := from.Digest()
	config, configErr := from.ConfigFile()
	layers, layersErr := from.Layers()
	if err := errors.Join(digestErr, configErr, layersErr); err != nil {
		return variant{}, err
	}
	platform := v1.Platform{OS: config.OS, Architecture: config.Architecture, Variant: config.Variant}
	out := variant{platform: platform, digest: digest}
	if base != "" {
		diffIDs, err := l.diffIDs(ctx, base, platform)
		if err != nil {
			return variant{}, err
		}
		// Compare diff IDs, not layer digests: engines compress the layers again.
		out.fromBase = len(diffIDs)
		if len(config.RootFS.DiffIDs) < len(diffIDs) || !slices.Equal(config.RootFS.DiffIDs[:len(diffIDs)], diffIDs) {
			return variant{}, fmt.Errorf("its first layers are not those that %s has in the registry: pull that and build again", base)
		}
	}
	for _, one := range layers {
		read, err := readLayer(one)
		if err != nil {
			return variant{}, fmt.Errorf("failed to read a layer: %w", err)
		}
		out.layers = append(out.layers, read)
	}
	return out, nil
}

// diffIDs returns the digests of an image's uncompressed layers.
func (l location) diffIDs(ctx context.Context, image string, platform v1.Platform) ([]v1.Hash, error) {
	found, err := l.get(ctx, image, remote.WithPlatform(platform))
	if err != nil {
		return nil, err
	}
	read, err := found.Image()
	if err != nil {
		return nil, fmt.Errorf("failed to read %s for %s: %w", image, platform, err)
	}
	config, err := read.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("failed to read %s for %s: %w", image, platform, err)
	}
	return config.RootFS.DiffIDs, nil
}

func readLayer(from v1.Layer) (layer, error) {
	digest, err := from.Digest()
	if err != nil {
		return layer{}, err
	}
	files, err := from.Uncompressed()
	if err != nil {
		return layer{}, err
	}
	defer func() { _ = files.Close() }()
	programs, err := findPrograms(files)
	if err != nil {
		return layer{}, err
	}
	// The rest is padding. Reading to the end verifies the layer's digest.
	_, err = io.Copy(io.Discard, files)
	return layer{digest: digest, programs: programs}, err
}

// findPrograms returns the Go programs in a tar archive, in archive order.
func findPrograms(archive io.Reader) ([]program, error) {
	var out []program
	for entries := tar.NewReader(archive); ; {
		header, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		content := bufio.NewReader(entries)
		if magic, _ := content.Peek(4); header.Typeflag != tar.TypeReg || string(magic) != "\x7fELF" {
			continue
		}
		raw, err := io.ReadAll(content)
		if err != nil {
			return nil, err
		}
		info, err := buildinfo.Read(bytes.NewReader(raw))
		if err != nil {
			continue // not a Go program
		}
		sum := sha256.Sum256(raw)
		out = append(out, program{path: path.Clean("/" + header.Name), sha256: hex.EncodeToString(sum[:]), info: info})
	}
}
