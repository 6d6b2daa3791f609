// Package images knows widely used images: their repositories, and which of them run as root.
package images

import (
	"slices"

	"github.com/distribution/reference"
)

const (
	// Nginx is the official image. It starts as root.
	Nginx = "docker.io/library/nginx"
	// Unprivileged is the official image with the user NginxUser instead of root.
	Unprivileged = "docker.io/nginxinc/nginx-unprivileged"
	// NginxUser is the ID of the user nginx in both images.
	NginxUser = 101
)

// Root are the repositories of widely used images without a USER. Copies elsewhere may differ.
var Root = []string{
	Nginx, "docker.io/library/busybox", "docker.io/library/alpine", "docker.io/library/debian", "docker.io/library/ubuntu",
	"docker.io/alpine/git",
}

// Parse returns the full repository of an image, for example docker.io/library/nginx for
// nginx:1.30, and its tag, or "" if it has none. Both are "" if the name is not valid.
func Parse(image string) (repository, tag string) {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return "", ""
	}
	if tagged, ok := named.(reference.Tagged); ok {
		tag = tagged.Tag()
	}
	return named.Name(), tag
}

// RunsAsRoot reports whether an image is known to run as root if the Pod sets no user.
func RunsAsRoot(image string) bool {
	repository, _ := Parse(image)
	return slices.Contains(Root, repository)
}
