package main

// This file builds images from Dockerfiles with buildah and pushes them into the cluster's registry.

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// buildTimeout bounds one build and one push.
const buildTimeout = 10 * time.Minute

// imageBuild is the command `image build`.
func (c *cluster) imageBuild(ctx context.Context, names []string, dockerfile, contextDir string, buildArgs []string) error {
	args := []string{
		"build", "--quiet", "--http-proxy=false", "--signature-policy", c.state("config", "policy.json"), "--file", dockerfile,
	}
	for _, name := range names {
		ref, err := parseReference(name)
		if err != nil {
			return err
		}
		args = append(args, "--tag", ref.String())
	}
	for _, arg := range buildArgs {
		args = append(args, "--build-arg", arg)
	}
	c.progress.step("building %s", strings.Join(names, " "))
	if err := c.buildah(ctx, append(args, contextDir)...); err != nil {
		return err
	}
	// Drop what the tags meant before, else every build makes the storage grow.
	return c.buildah(ctx, "rmi", "--prune")
}

// imagePush is the command `image push`.
func (c *cluster) imagePush(ctx context.Context, names []string) error {
	for _, name := range names {
		ref, err := parseReference(name)
		if err != nil {
			return err
		}
		c.progress.step("pushing %s", ref)
		digest, err := c.pushOne(ctx, ref)
		if err != nil {
			return err
		}
		if err := c.forget(ctx, ref, digest); err != nil {
			return err
		}
	}
	return nil
}

func (c *cluster) pushOne(ctx context.Context, ref reference) (digest string, err error) {
	file, err := os.CreateTemp(c.state(), "digest-")
	if err != nil {
		return "", fmt.Errorf("failed to make a temporary file: %w", err)
	}
	defer func() { _ = os.Remove(file.Name()) }()
	if err := file.Close(); err != nil {
		return "", fmt.Errorf("failed to make a temporary file: %w", err)
	}
	err = c.buildah(ctx, "push", "--quiet", "--signature-policy", c.state("config", "policy.json"), "--digestfile", file.Name(),
		ref.String(), "docker://"+ref.inCluster())
	if err != nil {
		return "", err
	}
	data, err := os.ReadFile(file.Name())
	if err != nil {
		return "", fmt.Errorf("failed to read the digest of %s: %w", ref, err)
	}
	return strings.TrimSpace(string(data)), nil
}

// forget removes the image from the node if the tag means another image now. A node keeps what it has under a tag:
// without this a new Pod would run yesterday's program.
func (c *cluster) forget(ctx context.Context, ref reference, digest string) error {
	for _, name := range []string{ref.String(), ref.inCluster()} {
		var out bytes.Buffer
		list := c.ctr(ctx, "images", "list", "name=="+name)
		list.Stdout = &out
		list.Stderr = &out
		if err := c.runInNetwork(list); err != nil {
			return fmt.Errorf("%w\n%s", err, out.String())
		}
		if old := listedDigest(out.String(), name); old == "" || old == digest {
			continue
		}
		out.Reset()
		remove := c.ctr(ctx, "images", "remove", name)
		remove.Stdout, remove.Stderr = &out, &out
		if err := c.runInNetwork(remove); err != nil {
			return fmt.Errorf("%w\n%s", err, out.String())
		}
	}
	return nil
}

// buildah runs buildah in the cluster's network, one at a time: its storage is shared.
func (c *cluster) buildah(ctx context.Context, args ...string) error {
	if !isNamespace(c.netns()) {
		return errNotRunning
	}
	ctx, cancel := context.WithTimeout(ctx, buildTimeout)
	defer cancel()
	dir, err := os.Open(c.state("config"))
	if err != nil {
		return fmt.Errorf("failed to lock the storage of images: %w", err)
	}
	defer func() { _ = dir.Close() }()
	err = poll(ctx, buildTimeout, 100*time.Millisecond, func(context.Context) error {
		return unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	})
	if err != nil {
		return fmt.Errorf("failed to lock the storage of images: %w", err)
	}
	cmd := c.command(ctx, "buildah", args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := c.runInNetwork(cmd); err != nil {
		return fmt.Errorf("%w\n%s", err, strings.TrimSpace(out.String()))
	}
	return nil
}
