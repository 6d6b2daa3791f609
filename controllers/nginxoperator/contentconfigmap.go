package nginxoperator

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/assets"
)

// content is the static files of one revision.
type content struct {
	// hash stands for the files in the name of the ConfigMap.
	hash string
	// text and binary are the files; both are nil where they were read in an earlier reconcile.
	text   map[string]string
	binary map[string][]byte
}

// newContent returns the files of a user's ConfigMap.
func newContent(source *corev1.ConfigMap) content {
	return content{shortHash(digest(source.Data) + digest(source.BinaryData)), source.Data, source.BinaryData}
}

// desiredContentConfigMap returns the copy of the user's ConfigMap that the operands mount, so that neither an edit nor
// the loss of the original reaches Pods that were made before it.
func desiredContentConfigMap(object *v1alpha2.NginxOperator, in inputs) *corev1.ConfigMap {
	configMap := assets.ConfigMap()
	configMap.ObjectMeta = childMeta(object, in)
	configMap.Name = contentName(object, in)
	configMap.Data, configMap.BinaryData = in.content.text, in.content.binary
	return configMap
}

// contentName returns the name of the copy, "" where the object names no content.
func contentName(object *v1alpha2.NginxOperator, in inputs) string {
	if in.content == nil {
		return ""
	}
	return object.Name + "-content-" + in.content.hash
}
