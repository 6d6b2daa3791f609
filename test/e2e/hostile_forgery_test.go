package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
)

const (
	// declaredText and forgedText are pages. The tenant replaces the operator's ConfigMap with one
	// that has forgedText.
	declaredText, forgedText = "declared by the owner", "forged by a tenant"
	// forgeries is the number of attempts of the tenant to be faster than the operator.
	forgeries = 200
	// quotedSecret is in Secrets that nginx and other programs quote in their error messages. It
	// does not contain secretText, because the kubelet copies the messages to the status of Pods.
	quotedSecret = "TEXTOFAQUOTEDSECRET"
)

// tenantForgesContent replaces the content ConfigMap of an instance, and deletes the Pods so that
// new ones mount the forged ConfigMap. The operator then reports the forgery in an Event, deletes
// the forged ConfigMap, and replaces all Pods. Each new Pod serves the declared content.
func tenantForgesContent(t *testing.T, attacker *tenant) {
	t.Helper()
	pages := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: attacker.namespace, Name: "pages"}}
	pages.Data = map[string]string{"index.html": declaredText}
	must(t, attacker.Create(t.Context(), pages))
	object := newObject(attacker.namespace, "forged", 2)
	object.Spec.Content = &v1alpha2.Content{ConfigMapRef: v1alpha2.ConfigMapReference{Name: pages.Name}}
	must(t, attacker.Create(t.Context(), object))
	waitForReady(t, object)
	before := uidsOf(t, object)

	forged := attacker.forge(t, contentOf(t, object))
	pods, err := podsOf(t.Context(), object)
	must(t, err)
	for i := range pods {
		must(t, client.IgnoreNotFound(attacker.Delete(t.Context(), &pods[i])))
	}
	waitFor(t, attacker.namespace, "an Event about the forgery", patience, func(ctx context.Context) error {
		return hasEvent(ctx, object, corev1.EventTypeWarning, v1alpha2.ReasonForgedContent)
	})
	waitFor(t, attacker.namespace, "the end of the forged ConfigMap", patience, func(ctx context.Context) error {
		live := &corev1.ConfigMap{}
		err := attacker.Get(ctx, client.ObjectKeyFromObject(forged), live)
		if err == nil && live.UID == forged.UID {
			err = errors.New("it is still there")
		}
		return client.IgnoreNotFound(err)
	})
	waitForNewPods(t, object, before)
	waitForOnly(t, object, 2)
	browser, err := suite.reach.client(false)
	must(t, err)
	pods, err = podsOf(t.Context(), object)
	must(t, err)
	for i := range pods {
		if slices.ContainsFunc(pods[i].Spec.Volumes, func(volume corev1.Volume) bool {
			return volume.ConfigMap != nil && volume.ConfigMap.Name == forged.Name
		}) {
			t.Errorf("%s mounts %s, of which its node may still have the forgery", pods[i].Name, forged.Name)
		}
		waitFor(t, attacker.namespace, pods[i].Name+" to serve what is declared", serviceDelay, func(ctx context.Context) error {
			return fetchText(ctx, browser, suite.reach.pod(&pods[i], 8080), declaredText)
		})
	}
	must(t, attacker.Delete(t.Context(), object))
	must(t, attacker.Delete(t.Context(), pages))
}

// contentOf returns the ConfigMap that the Pods of an object mount as content.
func contentOf(t *testing.T, object *v1alpha2.NginxOperator) *corev1.ConfigMap {
	t.Helper()
	for _, volume := range deploymentOf(t, object).Spec.Template.Spec.Volumes {
		if volume.Name != "content" || volume.ConfigMap == nil {
			continue
		}
		found := &corev1.ConfigMap{}
		must(t, suite.admin.Get(t.Context(), client.ObjectKey{Namespace: object.Namespace, Name: volume.ConfigMap.Name}, found))
		return found
	}
	fatal(t, object.Namespace, "%s mounts no content", object.Name)
	return nil
}

// forge replaces a ConfigMap with one that has another page. It races against the operator, which
// recreates the deleted ConfigMap.
func (a *tenant) forge(t *testing.T, live *corev1.ConfigMap) *corev1.ConfigMap {
	t.Helper()
	forged := &corev1.ConfigMap{}
	for range forgeries {
		must(t, client.IgnoreNotFound(a.Delete(t.Context(), live.DeepCopy())))
		forged = live.DeepCopy()
		forged.UID, forged.ResourceVersion, forged.Data = "", "", map[string]string{"index.html": forgedText}
		err := a.Create(t.Context(), forged)
		if err == nil {
			return forged
		}
		if !apierrors.IsAlreadyExists(err) {
			fatal(t, a.namespace, "the tenant cannot forge: %v", err)
		}
	}
	fatal(t, a.namespace, "the operator was quicker %d times, that shows nothing", forgeries)
	return nil
}

// tenantSecretInStatus creates instances that fail with messages that quote a Secret: an error of
// nginx about a file from a Secret, and the output of an init container with an environment
// variable. Neither the status nor an Event of the operator contains the text of the Secret.
func tenantSecretInStatus(t *testing.T, attacker *tenant) {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: attacker.namespace, Name: "quoted"}}
	secret.StringData = map[string]string{"text": quotedSecret + ";"} // nginx quotes an unknown directive
	must(t, attacker.Create(t.Context(), secret))
	file := newObject(attacker.namespace, "quotes-file", 1)
	file.Spec.Files = []v1alpha2.File{{Path: "a.conf", SecretRef: &v1alpha2.FileReference{Name: secret.Name, Key: "text"}}}
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
