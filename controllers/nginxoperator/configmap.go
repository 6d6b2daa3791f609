package nginxoperator

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/assets"
	"github.com/example/nginx-operator/internal/nginxconf"
)

// configuration is the nginx configuration of one revision.
type configuration struct {
	// hash stands for the files in the name of the ConfigMap.
	hash string
	// files is nil where they were read in an earlier reconcile, and only the hash is remembered.
	files nginxconf.Files
}

func newConfiguration(files nginxconf.Files) configuration {
	// What is hashed of a single file is its text, as release 0.1.0 did: the names of its ConfigMaps stay.
	if len(files) == 1 {
		return configuration{shortHash(files[nginxconf.MainFile]), files}
	}
	return configuration{shortHash(digest(files)), files}
}

func desiredConfigMap(object *v1alpha2.NginxOperator, in inputs) *corev1.ConfigMap {
	configMap := assets.ConfigMap()
	configMap.ObjectMeta = childMeta(object, in)
	configMap.Name = configName(object, in)
	configMap.Data = in.config.files
	return configMap
}

func configName(object *v1alpha2.NginxOperator, in inputs) string {
	return object.Name + "-" + in.config.hash
}

// shortHash returns ten hexadecimal digits that stand for a text in the name of an object.
func shortHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:5])
}

// digest returns what stands for a set of files, their names included.
func digest[T string | []byte](files map[string]T) string {
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		// The lengths keep apart what would be the same text one after the other.
		_, _ = fmt.Fprintf(sum, "%d %s %d %s ", len(name), name, len(files[name]), files[name])
	}
	return hex.EncodeToString(sum.Sum(nil))
}
