package images

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/example/nginx-operator/test/cluster/internal/debian"
	"github.com/example/nginx-operator/test/cluster/internal/host"
	"github.com/example/nginx-operator/test/cluster/internal/layout"
	"github.com/example/nginx-operator/test/cluster/internal/node"
)

// Store builds images and pushes them into the cluster's registry.
type Store struct {
	Node     *node.Node
	Progress *host.Progress
}

// PushParts creates and pushes the images of parts of the cluster.
func (s Store) PushParts(ctx context.Context, parts []layout.Part) error {
	for _, part := range parts {
		var packages []string
		if part == layout.Base {
			var err error
			if packages, err = s.Nginx(ctx, debian.Stable); err != nil {
				return err
			}
		}
		recipes, err := recipesOf(s.Node.Layout, part, packages)
		if err != nil {
			return err
		}
		if err := s.pushRecipes(ctx, recipes); err != nil {
			return err
		}
	}
	return nil
}

// Nginx returns the packages of a suite's nginx.
func (s Store) Nginx(ctx context.Context, suite string) ([]string, error) {
	return debian.Nginx(ctx, suite, s.Node.State(), s.Progress)
}

// PushNginx creates and pushes the images with the nginx of Debian suites.
func (s Store) PushNginx(ctx context.Context, suites []string) error {
	if err := s.Node.Running(); err != nil {
		return err
	}
	for _, suite := range suites {
		packages, err := s.Nginx(ctx, suite)
		if err != nil {
			return err
		}
		if err := s.pushRecipes(ctx, []recipe{nginxImage(packages, NginxOf(suite))}); err != nil {
			return err
		}
	}
	return nil
}

func (s Store) pushRecipes(ctx context.Context, recipes []recipe) error {
	transport, err := s.Node.Transport()
	if err != nil {
		return err
	}
	for _, r := range recipes {
		s.Progress.Step("image %s", strings.Join(r.names, " "))
		if err := r.push(s.Node.State(), remote.WithContext(ctx), remote.WithTransport(transport)); err != nil {
			return fmt.Errorf("failed to make the image %s: %w", r.names[0], err)
		}
	}
	return nil
}
