package integration

import (
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// TestValues verifies that a value of a ConfigMap that is created, changed, and removed is
// reconciled at once: it blocks the change, or rolls out, and no value blocks the next one.
func TestValues(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	createWeb(t, namespace, func(s *v1alpha2.NginxOperatorSpec) {
		const text = "server {\n    listen 8080;\n    client_max_body_size ${BODY};\n    return 200 \"${TENANT}\";\n}\n"
		s.Config = &v1alpha2.Config{Inline: text, Values: []v1alpha2.ConfigValue{
			{Name: "BODY", ValueFrom: &v1alpha2.ConfigValueSource{
				ConfigMapKeyRef: &v1alpha2.SecretFileReference{Name: "environment", Key: "body"},
			}},
			{Name: "TENANT", ValueFrom: &v1alpha2.ConfigValueSource{FieldRef: &v1alpha2.ConfigValueField{FieldPath: "metadata.namespace"}}},
		}}
	})
	waitForBlocker(t, namespace, v1alpha2.ReasonReferenceNotFound,
		`spec.config.values[0].valueFrom.configMapKeyRef.name: ConfigMap "environment"`)

	source := newConfigMap(namespace, "environment", map[string]string{"body": "2m\n"})
	create(t, source)
	wait := func(value string) {
		t.Helper()
		waitFor(t, func() error {
			out, err := childrenOf(t.Context(), namespace, "web")
			if err != nil {
				return err
			}
			if out.deployment == nil {
				return errors.New("no Deployment")
			}
			want := "server {\n    listen 8080;\n    client_max_body_size " + value + ";\n    return 200 \"" + namespace + "\";\n}\n"
			if got := mountedKeys(out, "/etc/nginx-operator")["servers.conf"]; got != want {
				return fmt.Errorf("the configuration is %q, want %q", got, want)
			}
			return nil
		})
	}
	wait("2m")
	rollOut(t, namespace, "web")
	waitForNoBlocker(t, namespace)

	update(t, source, func(c *corev1.ConfigMap) { c.Data["body"] = "5m; return 500" })
	waitForBlocker(t, namespace, v1alpha2.ReasonInvalidConfiguration,
		"spec.config.inline: line 3: the value of BODY changes the number of words")
	update(t, source, func(c *corev1.ConfigMap) { c.Data = nil })
	waitForBlocker(t, namespace, v1alpha2.ReasonReferenceNotFound, `ConfigMap "environment" has no key "body"`)
	wait("2m")
	update(t, source, func(c *corev1.ConfigMap) { c.Data = map[string]string{"body": "5m"} })
	wait("5m")
	rollOut(t, namespace, "web")
	waitForNoBlocker(t, namespace)
}
