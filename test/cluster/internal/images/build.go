package images

import "github.com/example/nginx-operator/test/cluster/internal/registry"

// Build says how an image is built from a Dockerfile.
type Build struct {
	// Names are what the image is called, each with a tag.
	Names []string
	// Dockerfile is the file with the instructions, Context the directory of what it copies.
	Dockerfile, Context string
	// Args are build arguments, each NAME=VALUE.
	Args []string
	// Timestamp is the time that the image and its files get, in seconds since 1970: the same files then make the same image. Empty for now.
	Timestamp string
}

// arguments returns how buildah is called for it.
func (b Build) arguments() ([]string, error) {
	args := []string{"--quiet", "--http-proxy=false", "--file", b.Dockerfile}
	for _, name := range b.Names {
		ref, err := registry.Parse(name)
		if err != nil {
			return nil, err
		}
		args = append(args, "--tag", ref.String())
	}
	for _, arg := range b.Args {
		args = append(args, "--build-arg", arg)
	}
	if b.Timestamp != "" {
		args = append(args, "--timestamp", b.Timestamp)
	}
	return append(args, b.Context), nil
}
