package components

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/test/cluster/internal/layout"
)

func TestRender(t *testing.T) {
	l := layout.New("/some/clone")
	files, err := render(l, "native")
	if err != nil {
		t.Fatal(err)
	}
	for path, data := range files {
		if strings.Contains(string(data), "<no value>") || strings.Contains(string(data), "{{") {
			t.Errorf("%s is not complete:\n%s", path, data)
		}
		if strings.HasSuffix(path, ".yaml") {
			if err := yaml.UnmarshalStrict(data, &map[string]any{}); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
		if strings.HasSuffix(path, ".json") || strings.HasSuffix(path, ".conflist") {
			if !json.Valid(data) {
				t.Errorf("%s is not JSON:\n%s", path, data)
			}
		}
		// The node sees its files at the same paths in every clone. Only buildah runs outside the
		// node.
		if path != "storage.conf" && strings.Contains(string(data), l.Repo) {
			t.Errorf("%s names the clone", path)
		}
	}
}

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
