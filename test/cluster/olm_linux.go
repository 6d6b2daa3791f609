package main

// This file installs the Operator Lifecycle Manager from the chart in its module.

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	olmNamespace      = "olm"
	operatorNamespace = "operators"
	// olmTimeout bounds the installation.
	olmTimeout = 5 * time.Minute
)

// olm is the command `olm`: the cluster with OLM in it.
func (c *cluster) olm(ctx context.Context) error {
	if err := c.up(ctx); err != nil {
		return err
	}
	if c.clients.olmReady(ctx) == nil {
		c.progress.step("OLM is installed")
		return nil
	}
	unlock, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	ctx, cancel := context.WithTimeout(ctx, olmTimeout)
	defer cancel()
	source, err := c.moduleDir(ctx, worldOLM, moduleOLM)
	if err != nil {
		return err
	}
	chart := filepath.Join(source, "deploy", "chart")
	c.progress.step("installing OLM: definitions")
	crds := filepath.Join(chart, "crds")
	if err := c.kubectl(ctx, nil, "apply", "--server-side", "--force-conflicts", "--filename", crds); err != nil {
		return err
	}
	if err := c.kubectl(ctx, nil, "wait", "--for=condition=Established", "--timeout=60s", "--filename", crds); err != nil {
		return err
	}
	c.progress.step("installing OLM: operators")
	manifests, err := c.renderOLM(ctx, chart)
	if err != nil {
		return err
	}
	// Right after its definition a kind may still be unknown for a moment.
	err = poll(ctx, time.Minute, time.Second, func(ctx context.Context) error {
		return c.kubectl(ctx, manifests, "apply", "--server-side", "--force-conflicts", "--filename", "-")
	})
	if err != nil {
		return fmt.Errorf("failed to install OLM: %w", err)
	}
	c.progress.step("waiting for OLM")
	if err := poll(ctx, olmTimeout, 200*time.Millisecond, c.clients.olmReady); err != nil {
		return fmt.Errorf("failed to wait for OLM (bin/cluster exec -- kubectl get pods -n %s): %w", olmNamespace, err)
	}
	c.progress.step("OLM is installed")
	return nil
}

// renderOLM renders the chart without its catalog of community operators, which lies outside of the cluster.
func (c *cluster) renderOLM(ctx context.Context, chart string) ([]byte, error) {
	olmVersion, err := c.moduleVersion(worldOLM, moduleOLM)
	if err != nil {
		return nil, err
	}
	opmVersion, err := c.moduleVersion(worldOLM, moduleRegistry)
	if err != nil {
		return nil, err
	}
	args := []string{"template", "olm", chart}
	for _, value := range []string{
		"namespace=" + olmNamespace,
		"catalog_namespace=" + olmNamespace,
		"operator_namespace=" + operatorNamespace,
		"installType=",
		"olm.image.ref=" + olmImage + ":" + olmVersion,
		"olm.image.pullPolicy=IfNotPresent",
		"catalog.image.ref=" + olmImage + ":" + olmVersion,
		"catalog.image.pullPolicy=IfNotPresent",
		"catalog.opmImageArgs=--opmImage=" + opmImage + ":" + opmVersion,
		"catalog.commandArgs=--configmapServerImage=" + opmImage + ":" + opmVersion,
		"package.image.ref=" + olmImage + ":" + olmVersion,
		"package.image.pullPolicy=IfNotPresent",
		"package.replicaCount=1",
	} {
		args = append(args, "--set", value)
	}
	cmd := exec.CommandContext(ctx, c.bin("helm"), args...) // #nosec G204 -- a tool of this repository
	// helm keeps its folders away from the user's own.
	cmd.Env = append(os.Environ(), "HELM_CACHE_HOME="+c.state("helm"), "HELM_CONFIG_HOME="+c.state("helm"), "HELM_DATA_HOME="+c.state("helm"))
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("failed to render the chart of OLM: %w", commandError(err))
	}
	return out, nil
}

// olmReady looks once whether OLM has installed its own aggregated API, the last thing that it does.
func (c *clients) olmReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	var version struct {
		Status struct{ Phase, Message string }
	}
	path := "/apis/operators.coreos.com/v1alpha1/namespaces/" + olmNamespace + "/clusterserviceversions/packageserver"
	if err := c.read(ctx, path, &version); err != nil {
		return err
	}
	if version.Status.Phase != "Succeeded" {
		return fmt.Errorf("packageserver is %q: %s", version.Status.Phase, version.Status.Message)
	}
	return nil
}

// kubectl runs kubectl; what it prints is part of the error only.
func (c *cluster) kubectl(ctx context.Context, stdin []byte, args ...string) error {
	cmd := c.command(ctx, c.bin("kubectl"), args...)
	var out bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(stdin), &out, &out
	if err := c.runInNetwork(cmd); err != nil {
		return fmt.Errorf("%w\n%s", err, strings.TrimSpace(out.String()))
	}
	return nil
}

// ctr runs containerd's client on the node's images.
func (c *cluster) ctr(ctx context.Context, args ...string) *exec.Cmd {
	return c.command(ctx, c.bin("ctr"), args...)
}
