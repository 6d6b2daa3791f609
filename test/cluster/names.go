package main

// This file maps the names of images: what a manifest says, where the cluster's registry keeps it.

import (
	"fmt"
	"regexp"
	"strings"
)

// mirroredRegistries are the registries whose images the node takes from the cluster's own one, so that manifests with
// the names that users pull work unchanged.
var mirroredRegistries = []string{"docker.io", "gcr.io", "ghcr.io", "quay.io", "registry.access.redhat.com", "registry.k8s.io"}

// reference is the name of an image in full.
type reference struct {
	// repository starts with the registry: docker.io/library/busybox.
	repository string
	tag        string
}

func (r reference) String() string { return r.repository + ":" + r.tag }

// inCluster is where the cluster's registry keeps the image. An image that is named after that registry stays as it is.
func (r reference) inCluster() string {
	if strings.HasPrefix(r.repository, registryAddress+"/") {
		return r.String()
	}
	return registryAddress + "/" + r.String()
}

// path is the repository within the cluster's registry.
func (r reference) path() string { return strings.TrimPrefix(r.repository, registryAddress+"/") }

var (
	repositoryPattern = regexp.MustCompile(`^[a-z0-9]+(?:[._-]+[a-z0-9]+)*(?::[0-9]+)?(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)+$`)
	tagPattern        = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)
)

// parseReference reads a name the way that container tools do: busybox is docker.io/library/busybox:latest.
func parseReference(name string) (reference, error) {
	if strings.Contains(name, "@") {
		return reference{}, fmt.Errorf("the image %q has a digest: name a tag", name)
	}
	ref := reference{repository: name, tag: "latest"}
	if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
		ref.repository, ref.tag = name[:i], name[i+1:]
	}
	first, _, nested := strings.Cut(ref.repository, "/")
	switch {
	case !nested:
		ref.repository = "docker.io/library/" + ref.repository
	case !strings.ContainsAny(first, ".:") && first != "localhost":
		ref.repository = "docker.io/" + ref.repository
	}
	if !repositoryPattern.MatchString(ref.repository) || !tagPattern.MatchString(ref.tag) {
		return reference{}, fmt.Errorf("the image name %q is not valid", name)
	}
	return ref, nil
}

// listedDigest finds the digest of an image in the answer of `ctr images list`: REF TYPE DIGEST SIZE ...
func listedDigest(answer, name string) string {
	for line := range strings.Lines(answer) {
		if fields := strings.Fields(line); len(fields) > 2 && fields[0] == name {
			return fields[2]
		}
	}
	return ""
}
