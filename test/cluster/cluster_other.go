//go:build !linux

package main

// This file stands in where there are no Linux namespaces: tools can be built, a cluster cannot run.

import (
	"context"
	"runtime"
)

type cluster struct{ layout }

func newCluster(l layout, _ *progress) *cluster { return &cluster{layout: l} }

func unsupported() error { return unavailable("it needs Linux, this is %s", runtime.GOOS) }

func (*cluster) up(context.Context) error                  { return unsupported() }
func (*cluster) olm(context.Context) error                 { return unsupported() }
func (*cluster) down(context.Context) error                { return unsupported() }
func (*cluster) status(context.Context) error              { return unsupported() }
func (*cluster) exec([]string) error                       { return unsupported() }
func (*cluster) imagePush(context.Context, []string) error { return unsupported() }
func (*cluster) imageBuild(context.Context, []string, string, string, []string) error {
	return unsupported()
}
