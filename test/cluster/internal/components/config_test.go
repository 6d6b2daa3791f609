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
	for path, wants := range map[string][]string{
		"kubelet.yaml":                       {"cgroupRoot: /" + l.ID},
		"containerd.toml":                    {`snapshotter = "native"`, `sandbox = "registry.k8s.io/pause:3.10"`},
		"certs.d/docker.io/hosts.toml":       {`server = "https://192.0.2.1:5000/v2/docker.io"`, "override_path = true"},
		"certs.d/192.0.2.1:5000/hosts.toml":  {`server = "https://192.0.2.1:5000/v2"`},
		"registries.conf":                    {`location = "192.0.2.1:5000/ghcr.io"`},
		"storage.conf":                       {`graphroot = "/some/clone/.cluster/storage"`},
		"Corefile":                           {"192.0.2.1 quay.io", "registry-1.docker.io:53"},
		"cni/10-pods.conflist":               {`"subnet": "198.18.0.0/24"`},
		"audit-policy.yaml":                  {"level: Metadata"},
		"metrics-server.yaml":                {"port: 4443", `addresses: ["192.0.2.1"]`},
		"kube-proxy.yaml":                    {"mode: nftables"},
		"registry.yaml":                      {"addr: 192.0.2.1:5000"},
		"resolv.conf":                        {"nameserver 192.0.2.1"},
		"certs.d/registry.k8s.io/hosts.toml": {"/v2/registry.k8s.io"},
	} {
		for _, want := range wants {
			if !strings.Contains(string(files[path]), want) {
				t.Errorf("%s has no %s:\n%s", path, want, files[path])
			}
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
