package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// quotedSecret is in Secrets that nginx and other programs quote in their error messages. It does
// not contain secretText, because the kubelet copies the messages to the status of Pods.
const quotedSecret = "TEXTOFAQUOTEDSECRET"

// tenantSecretInStatus creates instances that fail with messages that quote a Secret: an error of
// nginx about a file from a Secret, and the output of an init container with an environment
// variable. Neither the status nor an Event of the operator contains the text of the Secret.
func tenantSecretInStatus(t *testing.T, attacker *tenant) {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: attacker.namespace, Name: "quoted"}}
	secret.StringData = map[string]string{"text": quotedSecret + ";"} // nginx quotes an unknown directive
	must(t, attacker.Create(t.Context(), secret))
	file := newObject(attacker.namespace, "quotes-file", 1)
	file.Spec.Files = []v1alpha2.File{{Path: "a.conf", SecretRef: &v1alpha2.ObjectKeyReference{Name: secret.Name, Key: "text"}}}
	file.Spec.Config = &v1alpha2.Config{Inline: "server {\n    listen 8080;\n    include /etc/nginx/files/a.conf;\n}\n"}
	variable := newObject(attacker.namespace, "quotes-variable", 1)
	variable.Spec.InitContainers = []v1alpha2.Container{{
		Name: "quotes", Command: []string{"sh", "-c", "echo $QUOTED; exit 1"},
		Env: []v1alpha2.EnvVar{{Name: "QUOTED", ValueFrom: &v1alpha2.EnvVarSource{
			SecretKeyRef: &v1alpha2.KeyReference{Name: secret.Name, Key: "text"},
		}}},
	}}
	for _, test := range []struct {
		object *v1alpha2.NginxOperator
		reason string
	}{{file, v1alpha2.ReasonInvalidConfiguration}, {variable, v1alpha2.ReasonCrashLoop}} {
		must(t, attacker.Create(t.Context(), test.object))
		waitForDegraded(t, test.object, test.reason)
		pods, err := podsOf(t.Context(), test.object)
		must(t, err)
		if said, err := json.Marshal(pods); err != nil || !strings.Contains(string(said), quotedSecret) {
			t.Errorf("no Pod of %s quotes the Secret, that shows nothing: %v", test.object.Name, err)
		}
		must(t, saysNothingOfSecrets(t.Context(), test.object))
		must(t, attacker.Delete(t.Context(), test.object))
	}
	must(t, attacker.Delete(t.Context(), secret))
}

// saysNothingOfSecrets returns an error if the status of an object or the Events about it contain
// the text of the Secret. It also returns an error if either does not refer to `kubectl logs`.
func saysNothingOfSecrets(ctx context.Context, object *v1alpha2.NginxOperator) error {
	if err := suite.admin.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return err
	}
	events := &corev1.EventList{}
	if err := suite.admin.List(ctx, events, client.InNamespace(object.Namespace)); err != nil {
		return err
	}
	events.Items = slices.DeleteFunc(events.Items, func(event corev1.Event) bool { return event.InvolvedObject.UID != object.UID })
	for _, said := range []any{object.Status, events.Items} {
		raw, err := json.Marshal(said)
		if err != nil {
			return err
		}
		if strings.Contains(string(raw), quotedSecret) {
			return fmt.Errorf("%s has the text of a Secret: %s", object.Name, raw)
		}
		if !strings.Contains(string(raw), "kubectl logs") {
			return fmt.Errorf("%s does not say how to see what is withheld: %s", object.Name, raw)
		}
	}
	return nil
}
