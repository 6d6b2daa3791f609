package main

// This file holds the errors that tell the user what to do.

import (
	"errors"
	"fmt"
)

// errNotRunning is the answer of the commands that need a cluster.
var errNotRunning = errors.New("no cluster runs here: start it with `make cluster-up`")

// unavailable is the error where the cluster cannot run on this machine at all.
func unavailable(format string, args ...any) error {
	return fmt.Errorf("%w; to use a cluster of your own set CLUSTER=external, KUBECONFIG and IMAGE_REGISTRY",
		fmt.Errorf("the local cluster cannot run on this machine: "+format, args...))
}
