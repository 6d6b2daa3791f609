package operand

import "github.com/example/nginx-operator/internal/nginxconf"

// Files are the data of the ConfigMaps that Pods mount.
type Files struct {
	Config nginxconf.Files
	Text   map[string]string
	Binary map[string][]byte
	// FileText and FileBinary are the files of spec.files.
	FileText   map[string]string
	FileBinary map[string][]byte
}
