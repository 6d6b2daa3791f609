package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// images maps the kinds of images to their Dockerfile, and to the program in the image with its
// package, if any.
var images = map[string]struct{ dockerfile, program, source string }{
	"operator":  {"Dockerfile", "manager", "."},
	"bundle":    {dockerfile: "bundle.Dockerfile"},
	"catalog":   {dockerfile: "catalog.Dockerfile"},
	"scorecard": {"test/scorecard/Dockerfile", "scorecard", "./test/scorecard"},
	receiver:    {receiverDir + "/Dockerfile", "nginx-request-metrics", receiverDir},
	"examples":  {"examples/Dockerfile", "examples", "./examples"},
	// Only end-to-end tests use this image.
	"stranger": {"test/stranger/Dockerfile", "stranger", "./test/stranger"},
}

// image returns the name of an image of a release, or of a version of the receiver.
func (p *project) image(kind, release string) string {
	if kind == receiver {
		return p.registry + "/" + images[receiver].program + ":v" + release
	}
	return p.registry + "/" + strings.TrimSuffix(operatorName+"-"+kind, "-operator") + ":v" + release
}

// build builds the static program of an image for each platform, in the directory that the
// Dockerfile expects. It does not rebuild the program of an older release.
func (p *project) build(kind, release, tree string) error {
	if kind == receiver {
		return p.buildReceiver(tree)
	}
	for _, platform := range p.platforms {
		arch := strings.TrimPrefix(platform, "linux/")
		program := "dist/linux_" + arch + "/" + images[kind].program
		command := goBuild("linux", arch)
		if tree != "." {
			if _, err := os.Stat(filepath.Join(tree, program)); err == nil {
				continue
			}
			command = append(command, "-C", tree)
		}
		if kind == "operator" {
			command = append(command, "-ldflags=-s -w -X main.version="+release)
		}
		if err := execute(append(command, "-o", program, images[kind].source)); err != nil {
			return err
		}
	}
	return nil
}

// goBuild returns the command that builds a static program for a platform. The Makefile exports the
// other flags, and the environment of commands that compile.
func goBuild(system, arch string) []string {
	environment := append(strings.Fields(os.Getenv("GO_BUILD_ENV")), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+arch)
	return slices.Concat([]string{"env"}, environment, []string{"go", "build"})
}

// publishImage builds and publishes an image of this release.
func (p *project) publishImage(kind string) error {
	made, known := images[kind]
	if !known {
		return fmt.Errorf("unknown image %q", kind)
	}
	release, err := versionOf(kind, p.version, ".")
	if err != nil {
		return err
	}
	tree := p.delivery
	if made.program != "" {
		tree = "."
		if err := p.build(kind, release, tree); err != nil {
			return err
		}
	}
	if kind == "catalog" && p.digests {
		if err := p.nameBundleByDigest(); err != nil {
			return err
		}
	}
	return p.publish(kind, release, tree)
}

// publishOlder checks out all older releases, and publishes the images of some of them, or of all
// if none is given. It skips releases whose images the local cluster already has, according to a
// file in .cluster.
func (p *project) publishOlder(releases []string) error {
	if len(releases) == 0 {
		releases = p.older
	}
	published := map[string]bool{}
	for _, release := range releases {
		release, err := p.resolve(release)
		if err != nil {
			return err
		}
		published[release] = true
	}
	for _, release := range p.older {
		tree, origin, err := p.tree(release)
		if err != nil {
			return err
		}
		if !published[release] {
			continue
		}
		note := ".cluster/release-" + release
		if noted, _ := os.ReadFile(note); p.cluster == "local" && string(noted) == origin {
			fmt.Println("the cluster has the images of release", release)
			continue
		}
		err = p.build("operator", release, tree)
		if err == nil {
			err = p.publishRelease(release, tree, tree)
		}
		if err == nil {
			err = p.publishOlderReceiver(tree)
		}
		if err == nil && p.cluster == "local" {
			err = os.WriteFile(note, []byte(origin), 0o644)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// publishRelease publishes the images that OLM installs: the operator from one tree, and the bundle
// and the catalog from another.
func (p *project) publishRelease(release, operator, delivery string) error {
	for _, one := range []struct{ kind, tree string }{{"operator", operator}, {"bundle", delivery}, {"catalog", delivery}} {
		if err := p.publish(one.kind, release, one.tree); err != nil {
			return err
		}
	}
	return nil
}

// publish builds an image and pushes it to the registry of the cluster.
func (p *project) publish(kind, release, tree string) error {
	if image := p.image(kind, release); p.isPublished(kind, image) {
		fmt.Println("the registry has", image+", which never changes")
		return nil
	}
	head, err := readCheckout(kind)
	if err != nil {
		return err
	}
	arguments, err := p.baseArguments(filepath.Join(tree, images[kind].dockerfile))
	if err != nil {
		return err
	}
	if p.cluster == "local" {
		return execute(p.publishCommands("", kind, release, tree, head.time, arguments)...)
	}
	engine, err := engine()
	if err != nil {
		return err
	}
	// An existing manifest list would keep its entries. Usually there is none, so errors are
	// ignored.
	_ = exec.Command(engine, "manifest", "rm", p.image(kind, release)).Run()
	return execute(p.publishCommands(engine, kind, release, tree, head.time, arguments)...)
}

// publishCommands returns the commands that build and push an image. For an external cluster, all
// platforms share one tag. The image and its files have the time of the commit, so that builds are
// reproducible. arguments are options of each build.
func (p *project) publishCommands(engine, kind, release, tree string, commit time.Time, arguments []string) [][]string {
	image, from := p.image(kind, release), append(slices.Clone(arguments), "-f", filepath.Join(tree, images[kind].dockerfile), tree)
	seconds := strconv.FormatInt(commit.Unix(), 10)
	timestamp := "--timestamp=" + seconds
	if p.cluster == "local" {
		return [][]string{
			slices.Concat([]string{"bin/cluster", "image", "build", "-t", image, timestamp}, from), {"bin/cluster", "image", "push", image},
		}
	}
	var commands [][]string
	list := []string{engine, "manifest", "create", image}
	docker := strings.HasSuffix(engine, "docker")
	for _, platform := range p.platforms {
		// Older engines do not set these build arguments automatically.
		arch := strings.TrimPrefix(platform, "linux/")
		build := []string{engine, "build", "--platform=" + platform, "--build-arg=TARGETARCH=" + arch}
		if !docker {
			build = append(build, "--build-arg=BUILDPLATFORM=linux/"+runtime.GOARCH, timestamp, "--manifest="+image)
			commands = append(commands, append(build, from...))
			continue
		}
		// Docker creates manifest lists only from images that are already in the registry.
		one := image + "-" + arch
		list = append(list, one)
		env := []string{"env", "BUILDX_NO_DEFAULT_ATTESTATIONS=1", "SOURCE_DATE_EPOCH=" + seconds}
		commands = append(commands, slices.Concat(env, build, []string{"-t", one}, from), []string{engine, "push", one})
	}
	if docker {
		return append(commands, list, []string{engine, "manifest", "push", "--purge", image})
	}
	return append(commands, []string{engine, "manifest", "push", "--all", image, "docker://" + image})
}

// engine returns CONTAINER_TOOL, or the first engine that works. A client without its daemon does
// not work.
func engine() (string, error) {
	if tool := os.Getenv("CONTAINER_TOOL"); tool != "" {
		return tool, nil
	}
	for _, tool := range []string{"docker", "podman", "buildah"} {
		if exec.Command(tool, "info").Run() == nil {
			return tool, nil
		}
	}
	return "", errors.New("no container engine works here. Install and start docker, podman or buildah, or name one with CONTAINER_TOOL")
}
