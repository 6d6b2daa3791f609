package operand

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/assets"
	"github.com/example/nginx-operator/internal/nginxconf"
)

// Configuration is the nginx configuration of one revision.
type Configuration struct {
	// Hash identifies the files in the name of the ConfigMap.
	Hash string
	// Files is nil if only the hash is known.
	Files nginxconf.Files
}

// NewConfiguration returns a configuration with its hash.
func NewConfiguration(files nginxconf.Files) Configuration {
	// A single file has the hash of its text, so that the names of ConfigMaps of release 0.1.0 stay.
	if len(files) == 1 {
		return Configuration{ShortHash(files[nginxconf.MainFile]), files}
	}
	return Configuration{ShortHash(Digest(files)), files}
}

// ServersHash returns the hash of the user's server blocks from a ConfigMap.
func ServersHash(servers nginxconf.Servers) string {
	if len(servers) == 1 && servers[0].Key == "" {
		return ShortHash(servers[0].Text)
	}

	texts := map[string]string{}
	for _, part := range servers {
		texts[part.Key] = part.Text
	}
	return ShortHash(Digest(texts))
}

// Content is a set of files of one revision.
type Content struct {
	// Hash identifies the files in the name of the ConfigMap.
	Hash string
	// Text and Binary are the files by their keys. Both are nil if only the hash is known.
	Text   map[string]string
	Binary map[string][]byte
}

// NewContent returns the files of a user's ConfigMap: the keys of the items, or all keys if there
// are no items.
func NewContent(source *corev1.ConfigMap, items []v1alpha2.ContentItem) Content {
	text, binary := source.Data, source.BinaryData
	if len(items) > 0 {
		keys := sets.New[string]()
		for _, item := range items {
			keys.Insert(item.Key)
		}
		text, binary = only(text, keys), only(binary, keys)
	}
	return Content{ShortHash(Digest(text) + Digest(binary)), text, binary}
}

// only returns the values of some keys.
func only[T any](values map[string]T, keys sets.Set[string]) map[string]T {
	out := maps.Clone(values)
	maps.DeleteFunc(out, func(key string, _ T) bool { return !keys.Has(key) })
	return out
}

// Files are the data of the ConfigMaps that Pods mount.
type Files struct {
	Config nginxconf.Files
	Text   map[string]string
	Binary map[string][]byte
	// FileText and FileBinary are the files of spec.files.
	FileText   map[string]string
	FileBinary map[string][]byte
	// Directories are the files of the masks in spec.files, by the path of their directory.
	Directories map[string]Content
}

// newConfigMap returns a ConfigMap that Pods mount. It has copies of the user's files, so that a
// change of the originals does not affect running Pods.
func newConfigMap(object *v1alpha2.NginxOperator, in Inputs, name string, content Content) *corev1.ConfigMap {
	configMap := assets.ConfigMap()
	configMap.ObjectMeta = ObjectMeta(object, in)
	configMap.Name, configMap.Data, configMap.BinaryData = name, content.Text, content.Binary
	return configMap
}

// ConfigName returns the name of the ConfigMap with the nginx configuration.
func ConfigName(object *v1alpha2.NginxOperator, in Inputs) string {
	return object.Name + "-" + in.Config.Hash + in.Suffix
}

// ContentName returns the name of the ConfigMap with the static files, or "" without static files.
func ContentName(object *v1alpha2.NginxOperator, in Inputs) string {
	return nameOf(object, in, "content", in.Content)
}

// FilesName returns the name of the ConfigMap with the files of spec.files from ConfigMaps, or "".
func FilesName(object *v1alpha2.NginxOperator, in Inputs) string {
	return nameOf(object, in, "files", in.Files)
}

// DirectoryName returns the name of the ConfigMap with the files of a mask in spec.files.
func DirectoryName(object *v1alpha2.NginxOperator, in Inputs, directory Directory) string {
	return nameOf(object, in, "files", &directory.Content)
}

func nameOf(object *v1alpha2.NginxOperator, in Inputs, part string, content *Content) string {
	if content == nil {
		return ""
	}
	return object.Name + "-" + part + "-" + content.Hash + in.Suffix
}

// ShortHash returns ten hexadecimal digits that identify a text in the name of an object.
func ShortHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:5])
}

// Digest returns a hash of a set of files, including their names.
func Digest[T string | []byte](files map[string]T) string {
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		// The lengths distinguish sets of files whose concatenation is the same.
		_, _ = fmt.Fprintf(sum, "%d %s %d %s ", len(name), name, len(files[name]), files[name])
	}
	return hex.EncodeToString(sum.Sum(nil))
}
