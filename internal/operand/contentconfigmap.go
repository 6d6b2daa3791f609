package operand

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/assets"
)

// Content is a set of files of one revision.
type Content struct {
	// Hash identifies the files in the name of the ConfigMap.
	Hash string
	// Text and Binary are the files by their keys. Both are nil if an earlier reconcile read them,
	// and only the hash is known.
	Text   map[string]string
	Binary map[string][]byte
}

// NewContent returns the files of a user's ConfigMap.
func NewContent(source *corev1.ConfigMap) Content {
	return Content{ShortHash(Digest(source.Data) + Digest(source.BinaryData)), source.Data, source.BinaryData}
}

// DesiredContentConfigMap returns the copy of the user's ConfigMap that Pods mount. An edit or
// deletion of the original does not affect running Pods.
func DesiredContentConfigMap(object *v1alpha2.NginxOperator, in Inputs) *corev1.ConfigMap {
	configMap := assets.ConfigMap()
	configMap.ObjectMeta = ObjectMeta(object, in)
	configMap.Name = ContentName(object, in)
	configMap.Data, configMap.BinaryData = in.Content.Text, in.Content.Binary
	return configMap
}

// ContentName returns the name of the ConfigMap of DesiredContentConfigMap, or "" if the object
// references no content.
func ContentName(object *v1alpha2.NginxOperator, in Inputs) string {
	if in.Content == nil {
		return ""
	}
	return object.Name + "-content-" + in.Content.Hash + in.Suffix
}
