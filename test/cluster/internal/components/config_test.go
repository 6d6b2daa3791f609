package components

import (
	"os"
	"testing"
	"time"

	"github.com/example/nginx-operator/test/cluster/internal/layout"
)

// TestWriteConfigKeepsEqualFiles checks that unchanged files are not written, because kube-proxy
// exits if its file is written.
func TestWriteConfigKeepsEqualFiles(t *testing.T) {
	l := layout.New(t.TempDir())
	if err := WriteConfig(l, "native"); err != nil {
		t.Fatal(err)
	}
	past := time.Unix(1000, 0)
	for _, name := range []string{"kube-proxy.yaml", "containerd.toml"} {
		if err := os.Chtimes(l.Config(name), past, past); err != nil {
			t.Fatal(err)
		}
	}
	if err := WriteConfig(l, "overlayfs"); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"kube-proxy.yaml": true, "containerd.toml": false} {
		info, err := os.Stat(l.Config(name))
		if err != nil {
			t.Fatal(err)
		}
		if got := info.ModTime().Equal(past); got != want {
			t.Errorf("%s: left alone: %v", name, got)
		}
	}
}
