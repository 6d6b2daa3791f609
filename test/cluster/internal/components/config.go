package components

import (
	"bytes"
	"embed"
	"fmt"
	"os"
	"strings"
	"text/template"

	"github.com/example/nginx-operator/test/cluster/internal/host"
	"github.com/example/nginx-operator/test/cluster/internal/layout"
	"github.com/example/nginx-operator/test/cluster/internal/registry"
)

//go:embed config
var configFiles embed.FS

var templates = template.Must(template.New("").Option("missingkey=error").ParseFS(configFiles, "config/*"))

// render returns all configuration files, by path below the configuration directory.
func render(l layout.Layout, snapshotter string) (map[string][]byte, error) {
	values := map[string]any{
		"ID":              l.ID,
		"NodeIP":          layout.NodeIP,
		"PodCIDR":         layout.PodCIDR,
		"NodePodCIDR":     layout.NodePodCIDR,
		"ClusterDomain":   layout.ClusterDomain,
		"RegistryAddress": layout.RegistryAddress,
		"PauseImage":      layout.PauseImage,
		"Mirrors":         registry.Mirrored,
		"GatewayHosts":    registry.GatewayHosts(),
		"MetricsPort":     layout.MetricsPort,
		"Snapshotter":     snapshotter,
		// Paths in the node's mount namespace.
		"StateDir":  layout.NodeStateDir,
		"ConfigDir": layout.NodeConfigDir,
		"PKIDir":    layout.NodePKIDir,
		// Paths for buildah, which runs outside the node.
		"Storage":    l.State("storage"),
		"StorageRun": l.RunDir("storage"),
	}
	files := map[string][]byte{}
	add := func(path, name string, values any) error {
		var out bytes.Buffer
		if err := templates.ExecuteTemplate(&out, name, values); err != nil {
			return fmt.Errorf("failed to render %s: %w", name, err)
		}
		files[path] = out.Bytes()
		return nil
	}
	const hostsFile = "hosts.toml"
	for _, t := range templates.Templates() {
		path := t.Name()
		if path == hostsFile {
			continue // one file per registry, see below
		}
		if strings.HasSuffix(path, ".conflist") {
			path = "cni/" + path // containerd reads a directory
		}
		if err := add(path, t.Name(), values); err != nil {
			return nil, err
		}
	}
	servers := map[string]string{layout.RegistryAddress: layout.RegistryURL + "/v2"}
	for _, mirror := range registry.Mirrored {
		servers[mirror] = layout.RegistryURL + "/v2/" + mirror
	}
	for name, server := range servers {
		values := map[string]any{"Host": name, "Server": server, "PKIDir": layout.NodePKIDir}
		if err := add("certs.d/"+name+"/"+hostsFile, hostsFile, values); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// WriteConfig writes the configuration of all components. The snapshotter is containerd's.
func WriteConfig(l layout.Layout, snapshotter string) error {
	files, err := render(l, snapshotter)
	if err != nil {
		return err
	}
	for path, data := range files {
		// kube-proxy exits if its file is written, even with the same content.
		if old, err := os.ReadFile(l.Config(path)); err == nil && bytes.Equal(old, data) {
			continue
		}
		if err := host.WriteFile(l.Config(path), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
