package images

import "github.com/example/nginx-operator/test/cluster/internal/registry"

// Build describes how to build an image from a Dockerfile.
type Build struct {
	// Names are the names of the image, each with an optional tag.
	Names []string
	// Dockerfile is the path of the Dockerfile. Context is the directory of the files that it
	// copies.
	Dockerfile, Context string
	// Args are build arguments, each NAME=VALUE.
	Args []string
	// Timestamp is the time of the image and its files, in seconds since 1970. With a fixed time,
	// the same files result in the same image. If it is empty, the current time is used.
	Timestamp string
}

// arguments returns the arguments of buildah build.
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
