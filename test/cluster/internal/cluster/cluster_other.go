//go:build !linux

// Package cluster stands in where there are no Linux namespaces: tools can be built, a cluster cannot run.
package cluster

import (
	"context"
	"runtime"

	"github.com/example/nginx-operator/test/cluster/internal/host"
	"github.com/example/nginx-operator/test/cluster/internal/images"
	"github.com/example/nginx-operator/test/cluster/internal/layout"
)

// Cluster cannot run here.
type Cluster struct{}

// New returns the stand-in.
func New(layout.Layout, *host.Progress) *Cluster { return &Cluster{} }

func unsupported() error { return host.Unavailable("it needs Linux, this is %s", runtime.GOOS) }

// The commands fail.

func (*Cluster) Up(context.Context) error                       { return unsupported() }
func (*Cluster) OLM(context.Context) error                      { return unsupported() }
func (*Cluster) OLMv1(context.Context) error                    { return unsupported() }
func (*Cluster) Down(context.Context) error                     { return unsupported() }
func (*Cluster) Status(context.Context) error                   { return unsupported() }
func (*Cluster) Exec([]string) error                            { return unsupported() }
func (*Cluster) PushImages(context.Context, []string) error     { return unsupported() }
func (*Cluster) BuildImage(context.Context, images.Build) error { return unsupported() }
