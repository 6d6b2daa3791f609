package nginxoperator

import (
	"crypto/sha256"
	"encoding/hex"

	corev1 "k8s.io/api/core/v1"

	"github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/assets"
)

// nginxConfKey is the file name of the configuration in the ConfigMap; the Deployment's command names it.
const nginxConfKey = "nginx.conf"

func desiredConfigMap(object *v1alpha1.NginxOperator, in inputs, conf string) *corev1.ConfigMap {
	configMap := assets.ConfigMap()
	configMap.ObjectMeta = childMeta(object, in)
	configMap.Name = object.Name + "-" + contentHash(conf)
	configMap.Data = map[string]string{nginxConfKey: conf}
	return configMap
}

// contentHash returns ten hexadecimal digits that stand for the content in the name of an object.
func contentHash(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:5])
}
