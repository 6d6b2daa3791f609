package integration

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// mountedKeys returns the keys of the ConfigMap that the Pods mount as a whole in a directory.
func mountedKeys(c children, directory string) map[string]string {
	for _, mount := range podOf(c).Containers[0].VolumeMounts {
		if mount.MountPath != directory {
			continue
		}
		for _, volume := range podOf(c).Volumes {
			at := slices.IndexFunc(c.configMaps, func(configMap corev1.ConfigMap) bool {
				return volume.Name == mount.Name && volume.ConfigMap != nil && len(volume.ConfigMap.Items) == 0 &&
					volume.ConfigMap.Name == configMap.Name
			})
			if at >= 0 {
				return c.configMaps[at].Data
			}
		}
	}
	return nil
}

// TestMasks verifies that a new key that a mask matches rolls out, that a broken key blocks the
// change and names the key and the line, that the Pods and their ConfigMaps then stay as they are,
// and that no ConfigMap is left over.
func TestMasks(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	source := newConfigMap(namespace, "named", map[string]string{
		"00-maps.conf": "map $host $a { default 1; }\n", "a.inc": "add_header A $a;\n", "notes.txt": "{",
		"20-files.conf": strings.Replace(servers, "return", "include /etc/nginx/files/inc/*.inc;\n    return", 1),
	})
	create(t, source)
	createWeb(t, namespace, func(s *v1alpha2.NginxOperatorSpec) {
		s.Config = &v1alpha2.Config{ConfigMapRef: &v1alpha2.ConfigMapKeyReference{Name: "named", Key: "*.conf"}}
		s.Files = []v1alpha2.File{{Path: "inc", ConfigMapRef: &v1alpha2.FileReference{Name: "named", Key: "*.inc"}}}
	})
	wait := func(configs, files int) children {
		t.Helper()
		var out children
		waitFor(t, func() (err error) {
			if out, err = childrenOf(t.Context(), namespace, "web"); err != nil {
				return err
			}
			if out.deployment == nil {
				return errors.New("no Deployment")
			}
			config, inc := mountedKeys(out, "/etc/nginx-operator"), mountedKeys(out, "/etc/nginx/files/inc")
			if len(config) != configs+1 || len(inc) != files || len(out.configMaps) != 2 {
				return fmt.Errorf("%d files of the configuration, %d in the directory, %d ConfigMaps", len(config), len(inc), len(out.configMaps))
			}
			return nil
		})
		return out
	}
	first := wait(2, 1)
	rollOut(t, namespace, "web")
	update(t, source, func(c *corev1.ConfigMap) { c.Data["40-more.conf"], c.Data["b.inc"] = "gzip on;\n", "etag off;\n" })
	waitForGeneration(t, namespace, first.deployment.Generation+1)
	rollOut(t, namespace, "web")
	second := wait(3, 2)
	if first.deployment.Spec.Template.Size() != second.deployment.Spec.Template.Size() {
		t.Error("the Pod template has another size with more keys")
	}

	update(t, source, func(c *corev1.ConfigMap) { c.Data["40-more.conf"] = "\ngzip onn;\n" })
	waitForBlocker(t, namespace, v1alpha2.ReasonInvalidConfiguration,
		`spec.config.configMapRef: ConfigMap "named", key "40-more.conf": line 2: invalid value "onn"`)
	update(t, source, func(c *corev1.ConfigMap) { c.Data["40-more.conf"], c.Data["b.inc"] = "gzip on;\n", "\n\netag offf;\n" })
	waitForBlocker(t, namespace, v1alpha2.ReasonInvalidConfiguration,
		`spec.config.configMapRef: ConfigMap "named", key "*.conf": /etc/nginx/files/inc/b.inc, line 3: invalid value "offf"`)
	requireSamePods(t, second, must1(childrenOf(t.Context(), namespace, "web"))(t))
	update(t, source, func(c *corev1.ConfigMap) { delete(c.Data, "b.inc") })
	waitForNoBlocker(t, namespace)
	waitForGeneration(t, namespace, second.deployment.Generation+1)
	rollOut(t, namespace, "web")
	wait(3, 1)
}
