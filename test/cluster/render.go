package main

// This file writes the configuration of the components from the templates under config/.

import (
	"bytes"
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"text/template"
)

//go:embed config
var configFiles embed.FS

var configTemplates = template.Must(template.New("").Option("missingkey=error").ParseFS(configFiles, "config/*"))

// settings are what the templates can name.
type settings struct {
	ID, NodeIP, PodCIDR, NodePodCIDR, ClusterDomain, RegistryAddress string
	// The paths as the components see them.
	StateDir, ConfigDir, PKIDir string
	// The paths as the caller of buildah sees them.
	Storage, StorageRun string
	Snapshotter         string
	PauseImage          string
	Mirrors             []string
	GatewayHosts        []string
}

func (l layout) settings(snapshotter string) settings {
	return settings{
		ID:              l.id,
		NodeIP:          nodeIP,
		PodCIDR:         podCIDR,
		NodePodCIDR:     nodePodCIDR,
		ClusterDomain:   clusterDomain,
		RegistryAddress: registryAddress,
		StateDir:        nodeStateDir,
		ConfigDir:       nodeConfigDir,
		PKIDir:          nodePKIDir,
		Storage:         l.state("storage"),
		StorageRun:      l.run("storage"),
		Snapshotter:     snapshotter,
		PauseImage:      pauseImage,
		Mirrors:         mirroredRegistries,
		GatewayHosts:    gatewayHosts(),
	}
}

func render(name string, data any) ([]byte, error) {
	var out bytes.Buffer
	if err := configTemplates.ExecuteTemplate(&out, name, data); err != nil {
		return nil, fmt.Errorf("failed to render %s: %w", name, err)
	}
	return out.Bytes(), nil
}

// renderAll returns every configuration file by its path below the configuration folder.
func renderAll(s settings) (map[string][]byte, error) {
	files := map[string][]byte{}
	for name, path := range map[string]string{
		"audit-policy.yaml": "audit-policy.yaml",
		"containerd.toml":   "containerd.toml",
		"cni.conflist":      "cni/10-pods.conflist",
		"registry.yaml":     "registry.yaml",
		"kubelet.yaml":      "kubelet.yaml",
		"kube-proxy.yaml":   "kube-proxy.yaml",
		"Corefile":          "Corefile",
		"resolv.conf":       "resolv.conf",
		"registries.conf":   "registries.conf",
		"policy.json":       "policy.json",
		"storage.conf":      "storage.conf",
	} {
		data, err := render(name, s)
		if err != nil {
			return nil, err
		}
		files[path] = data
	}
	hosts := map[string]string{registryAddress: "https://" + registryAddress + "/v2"}
	for _, mirror := range s.Mirrors {
		hosts[mirror] = "https://" + registryAddress + "/v2/" + mirror
	}
	for host, server := range hosts {
		data, err := render("hosts.toml", struct{ Host, Server, PKIDir string }{host, server, s.PKIDir})
		if err != nil {
			return nil, err
		}
		files["certs.d/"+host+"/hosts.toml"] = data
	}
	return files, nil
}

func (l layout) writeConfig(snapshotter string) error {
	files, err := renderAll(l.settings(snapshotter))
	if err != nil {
		return err
	}
	for path, data := range files {
		// kube-proxy ends itself when its file is written, even with the same content.
		if old, err := os.ReadFile(l.state("config", path)); err == nil && bytes.Equal(old, data) {
			continue
		}
		if err := writeFile(l.state("config", path), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// writeFile makes the folder as well.
func writeFile(path string, data []byte, mode os.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { // #nosec G301 -- other users may look
		return fmt.Errorf("failed to make %s: %w", filepath.Dir(path), err)
	}
	if err := os.WriteFile(path, data, mode); err != nil {
		return fmt.Errorf("failed to write %s: %w", path, err)
	}
	return nil
}
