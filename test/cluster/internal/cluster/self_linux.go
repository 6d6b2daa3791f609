package cluster

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/example/nginx-operator/test/cluster/internal/host"
)

// installSelf copies this program to bin/cluster, where the node runs it. `go run` requires this
// copy.
func (c *Cluster) installSelf() error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("failed to find this program: %w", err)
	}
	if self, err = filepath.EvalSymlinks(self); err != nil || self == c.Node.Bin("cluster") {
		return err
	}
	data, err := os.ReadFile(self)
	if err != nil {
		return fmt.Errorf("failed to read this program: %w", err)
	}
	// A running program cannot be overwritten, but it can be replaced.
	written := c.Node.Bin("cluster.new")
	if err := host.WriteFile(written, data, 0o755); err != nil {
		return err
	}
	if err := os.Rename(written, c.Node.Bin("cluster")); err != nil {
		return fmt.Errorf("failed to install this program: %w", err)
	}
	return nil
}
