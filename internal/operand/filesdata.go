package operand

import "github.com/example/nginx-operator/internal/nginxconf"

// Files are the data of the ConfigMaps that Pods mount.
type Files struct {
	Config nginxconf.Files   `json:"config,omitempty"`
	Text   map[string]string `json:"text,omitempty"`
	Binary map[string][]byte `json:"binary,omitempty"`
	// FileText and FileBinary are the files of spec.files.
	FileText   map[string]string `json:"fileText,omitempty"`
	FileBinary map[string][]byte `json:"fileBinary,omitempty"`
}
