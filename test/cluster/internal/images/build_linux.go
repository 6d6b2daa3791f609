package images

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/example/nginx-operator/test/cluster/internal/host"
	"github.com/example/nginx-operator/test/cluster/internal/registry"
)

// buildTimeout bounds one build or push, and the wait for the storage lock.
const buildTimeout = 10 * time.Minute

// BuildImage builds an image and removes the images that it replaces.
func (s Store) BuildImage(ctx context.Context, b Build) error {
	args, err := b.arguments()
	if err != nil {
		return err
	}
	s.Progress.Step("building %s", strings.Join(b.Names, " "))
	if err := s.buildah(ctx, slices.Concat([]string{"build", "--signature-policy", s.Node.Config("policy.json")}, args)...); err != nil {
		return err
	}
	// Remove the previous images of the tags. Otherwise every build would grow the storage.
	return s.buildah(ctx, "rmi", "--prune")
}

// PushImages pushes images that were built here. Pods use them by the same names.
func (s Store) PushImages(ctx context.Context, names []string) error {
	for _, name := range names {
		ref, err := registry.Parse(name)
		if err != nil {
			return err
		}
		s.Progress.Step("pushing %s", ref)
		digest, err := s.push(ctx, ref)
		if err != nil {
			return err
		}
		if err := s.forget(ctx, ref, digest); err != nil {
			return err
		}
	}
	return nil
}

func (s Store) push(ctx context.Context, ref registry.Reference) (digest string, err error) {
	file, err := os.CreateTemp("", "digest-")
	if err != nil {
		return "", fmt.Errorf("failed to make a temporary file: %w", err)
	}
	defer func() { _ = os.Remove(file.Name()) }()
	if err := file.Close(); err != nil {
		return "", fmt.Errorf("failed to make a temporary file: %w", err)
	}
	err = s.buildah(ctx, "push", "--quiet", "--signature-policy", s.Node.Config("policy.json"), "--digestfile", file.Name(),
		ref.String(), "docker://"+ref.InCluster())
	if err != nil {
		return "", err
	}
	data, err := os.ReadFile(file.Name())
	if err != nil {
		return "", fmt.Errorf("failed to read the digest of %s: %w", ref, err)
	}
	return strings.TrimSpace(string(data)), nil
}

// forget removes the image from the node if the tag now refers to another image. A node does not
// pull a tag again, so without this, a new Pod would run the old image.
func (s Store) forget(ctx context.Context, ref registry.Reference, digest string) error {
	for _, name := range []string{ref.String(), ref.InCluster()} {
		list, err := s.Node.Run(ctx, nil, s.Node.Bin("ctr"), "images", "list", "name=="+name)
		if err != nil {
			return err
		}
		if old := listedDigest(list, name); old == "" || old == digest {
			continue
		}
		if _, err := s.Node.Run(ctx, nil, s.Node.Bin("ctr"), "images", "remove", name); err != nil {
			return err
		}
	}
	return nil
}

// buildah runs buildah in the cluster's network. Only one command runs at a time, because they
// share the storage.
func (s Store) buildah(ctx context.Context, args ...string) error {
	if err := s.Node.Running(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, buildTimeout)
	defer cancel()
	dir, err := os.Open(s.Node.Config(""))
	if err != nil {
		return fmt.Errorf("failed to lock the storage of images: %w", err)
	}
	defer func() { _ = dir.Close() }()
	err = host.Poll(ctx, buildTimeout, 100*time.Millisecond, func(context.Context) error {
		return unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	})
	if err != nil {
		return fmt.Errorf("failed to lock the storage of images: %w", err)
	}
	_, err = s.Node.Run(ctx, nil, "buildah", args...)
	return err
}

// listedDigest returns the digest of an image in the output of `ctr images list` (REF TYPE DIGEST
// SIZE ...), or "" if the image is not listed.
func listedDigest(output, name string) string {
	for line := range strings.Lines(output) {
		if fields := strings.Fields(line); len(fields) > 2 && fields[0] == name {
			return fields[2]
		}
	}
	return ""
}
