package main

// This file compiles pause, the program that holds a Pod's namespaces, from the source of Kubernetes.

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// buildPause compiles pause when it is not there or was made from another version.
func (c *cluster) buildPause(ctx context.Context, progress *progress) error {
	version, err := c.moduleVersion(worldKubernetes, moduleKubernetes)
	if err != nil {
		return err
	}
	if done, err := os.ReadFile(c.stamp("pause")); err == nil && string(done) == version {
		if _, err := os.Stat(c.bin("pause")); err == nil {
			return nil
		}
	}
	progress.step("building pause")
	dir, err := c.moduleDir(ctx, worldKubernetes, moduleKubernetes)
	if err != nil {
		return err
	}
	source := filepath.Join(dir, "build", "pause", "linux", "pause.c")
	_, tag, _ := strings.Cut(pauseImage, ":")
	err = runCommand(ctx, "gcc", "-Os", "-Wall", "-static", "-s", "-DVERSION=v"+tag, "-o", c.bin("pause"), source)
	if err != nil {
		return unavailable("the C compiler does not work: %w", err)
	}
	if err := writeFile(c.stamp("pause"), []byte(version), 0o600); err != nil {
		return fmt.Errorf("failed to note the build of pause: %w", err)
	}
	return nil
}
