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

// PushImages pushes images that were built here. Pods use them by the same names. A node does not
// pull a tag again, so it forgets the images.
func (s Store) PushImages(ctx context.Context, names []string) error {
	for _, name := range names {
		ref, err := registry.Parse(name)
		if err != nil {
			return err
		}
		s.Progress.Step("pushing %s", ref)
		err = s.buildah(ctx, "push", "--quiet", "--signature-policy", s.Node.Config("policy.json"), ref.String(), "docker://"+ref.InCluster())
		if err != nil {
			return err
		}
		if _, err := s.Node.Run(ctx, nil, s.Node.Bin("ctr"), "images", "remove", ref.String(), ref.InCluster()); err != nil {
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
