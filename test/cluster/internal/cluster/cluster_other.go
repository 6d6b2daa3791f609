//go:build !linux

// Package cluster replaces the cluster on systems without Linux namespaces. There, tools can be
// built, but a cluster cannot run.
package cluster

import (
	"context"
	"runtime"

	"github.com/example/nginx-operator/test/cluster/internal/host"
	"github.com/example/nginx-operator/test/cluster/internal/images"
	"github.com/example/nginx-operator/test/cluster/internal/layout"
)

// Cluster is a cluster that cannot run.
type Cluster struct{}

// New returns a cluster whose methods fail.
func New(layout.Layout, *host.Progress) *Cluster { return &Cluster{} }

func unsupported() error { return host.Unavailable("it needs Linux, this is %s", runtime.GOOS) }

func (*Cluster) Up(context.Context, []layout.Part) error        { return unsupported() }
func (*Cluster) Down(context.Context) error                     { return unsupported() }
func (*Cluster) Status(context.Context) error                   { return unsupported() }
func (*Cluster) Exec([]string) error                            { return unsupported() }
func (*Cluster) PushImages(context.Context, []string) error     { return unsupported() }
func (*Cluster) PushNginx(context.Context, []string) error      { return unsupported() }
func (*Cluster) PushPeers(context.Context) error                { return unsupported() }
func (*Cluster) BuildImage(context.Context, images.Build) error { return unsupported() }
