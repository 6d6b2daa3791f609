package images

import (
	"context"
	"fmt"

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

// PushParts creates and pushes the images of parts of the cluster. nginx are the packages of nginx.
func (s Store) PushParts(ctx context.Context, parts []layout.Part, nginx []string) error {
	for _, part := range parts {
		recipes, err := recipesOf(s.Node.Layout, part, nginx)
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

// PushPeers creates and pushes the images of the programs that recipes of the documentation run next
// to nginx.
func (s Store) PushPeers(ctx context.Context) error {
	if err := s.Node.Running(); err != nil {
		return err
	}
	for _, p := range peers {
		packages, err := debian.Fetch(ctx, p.packages(), s.Node.State(), s.Progress)
		if err != nil {
			return host.Unavailable("%w", err)
		}
		if err := s.pushRecipes(ctx, []recipe{p.recipe(packages)}); err != nil {
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
		others := ""
		if len(r.names) > 1 {
			others = fmt.Sprintf(" and %d other names", len(r.names)-1)
		}
		s.Progress.Step("image %s%s", r.names[0], others)
		if err := r.push(remote.WithContext(ctx), remote.WithTransport(transport)); err != nil {
			return fmt.Errorf("failed to make the image %s: %w", r.names[0], err)
		}
	}
	return nil
}
