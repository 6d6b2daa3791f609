package e2e

// Masks in config and files.
//
//   - Several files whose order matters are served, with the files that they include. A new key is
//     served without a change of the NginxOperator.
//   - 18 virtual hosts, one key each. A client is added while the others are requested. A broken key
//     is reported with its line, and a Pod that starts then serves all earlier clients.

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/docs"
	"github.com/example/nginx-operator/internal/health"
)

func testMasks(t *testing.T) {
	namespace := newNamespace(t, restricted)
	requests := applySample(t, namespace, filepath.Join(suite.repository, "test", "e2e", "testdata", "masks.yaml"))
	for _, request := range requests {
		sampleAnswers(t, namespace, request)
	}

	source := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "c07-conf-d"}}
	update(t, source, func(c *corev1.ConfigMap) {
		c.Data["40-more.conf"] = "server {\n    listen 8080;\n    server_name more.example.com;\n    return 200 more;\n}\n"
	})
	hostAnswers(t, namespace, "c07-web:80", "more.example.com", "more")

	web := newObject(namespace, "c07-web", 1)
	update(t, source, func(c *corev1.ConfigMap) {
		c.Data["20-files.conf"] = strings.Replace(c.Data["20-files.conf"], "autoindex on;", "autoindex onn;", 1)
	})
	isDegraded(t, web, v1alpha2.ReasonInvalidConfiguration, `ConfigMap "c07-conf-d", key "20-files.conf": line 8: `)
	replacePod(t, web)
	for _, request := range requests {
		requestAnswers(t, namespace, request)
	}
}

func testManyHosts(t *testing.T) {
	namespace := newNamespace(t, restricted)
	const format = "server {\n    listen 8080;\n    server_name %[1]s.example.com;\n    location / { return 200 \"client %[1]s\"; }\n}\n"
	source := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "c08-clients"},
		Data:       map[string]string{"00-default.conf": "server {\n    listen 8080 default_server;\n    return 200 \"client none\";\n}\n"},
	}
	clients := strings.Fields("alpha bravo charlie delta echo foxtrot golf hotel india juliett kilo lima mike november oscar papa quebec " +
		"romeo")
	for _, client := range clients {
		source.Data[client+".example.com.conf"] = fmt.Sprintf(format, client)
	}
	must(t, suite.admin.Create(t.Context(), source))
	object := newObject(namespace, "c08-hosting", 2)
	object.Spec.Config = &v1alpha2.Config{ConfigMapRef: &v1alpha2.ConfigMapKeyReference{Name: source.Name, Key: "*.conf"}}
	must(t, suite.admin.Create(t.Context(), object))
	waitForReady(t, object)
	served := func(clients ...string) {
		t.Helper()
		for _, client := range clients {
			hostAnswers(t, namespace, "c08-hosting:8080", client+".example.com", "client "+client)
		}
	}
	served(clients...)

	load := startLoadOf(t, namespace, suite.reach.service(namespace, object.Name, 8080), "client none")
	update(t, source, func(c *corev1.ConfigMap) { c.Data["sierra.example.com.conf"] = fmt.Sprintf(format, "sierra") })
	served("sierra")
	waitForReady(t, object)
	load.finish(t, namespace, "a new key")

	update(t, source, func(c *corev1.ConfigMap) { c.Data["broken.example.com.conf"] = "serverr {\n}\n" })
	isDegraded(t, object, v1alpha2.ReasonInvalidConfiguration,
		`ConfigMap "c08-clients", key "broken.example.com.conf": line 1: unknown directive "serverr"`)
	replacePod(t, object)
	served(append(clients, "sierra")...)
}

// hostAnswers waits until a host name at a Service answers with a text.
func hostAnswers(t *testing.T, namespace, service, host, text string) {
	t.Helper()
	requests, err := docs.Requests(fmt.Sprintf("# $ curl -H 'Host: %s' http://%s/\n# 200 %s\n", host, service, text))
	must(t, err)
	requestAnswers(t, namespace, requests[0])
}

// isDegraded waits until an object has a reason, and requires words in the message.
func isDegraded(t *testing.T, object *v1alpha2.NginxOperator, reason, want string) {
	t.Helper()
	waitForDegraded(t, object, reason)
	if message := object.Status.BlockedBy[0].Message; !strings.Contains(message, want) {
		t.Errorf("the message does not have %q: %s", want, message)
	}
}

// replacePod deletes a Pod, and waits until another one is ready.
func replacePod(t *testing.T, object *v1alpha2.NginxOperator) {
	t.Helper()
	before, err := podsOf(t.Context(), object)
	must(t, err)
	if len(before) == 0 {
		t.Fatal("there is no Pod")
	}

	must(t, suite.admin.Delete(t.Context(), &before[0]))
	waitFor(t, object.Namespace, "another Pod to be ready", patience, func(ctx context.Context) error {
		pods, err := podsOf(ctx, object)
		if err != nil || len(pods) != len(before) {
			return errors.Join(err, fmt.Errorf("there are %d Pods", len(pods)))
		}
		for i := range pods {
			if !health.IsReady(&pods[i]) || pods[i].UID == before[0].UID {
				return fmt.Errorf("%s is not ready, or not deleted", pods[i].Name)
			}
		}
		return nil
	})
}
