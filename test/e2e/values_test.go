package e2e

// Values of config, and spec.nginx.resolver, on the real nginx.
//
//   - A changed value of a ConfigMap is served without a failed request. One that would add a
//     directive, and a missing key, are reported with the name of the value, and the Pods stay.
//   - A backend that is deleted and created again answers through a router that resolves its name,
//     without a restart of the router.

import (
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/docs"
)

func testValues(t *testing.T) {
	namespace := newNamespace(t, restricted)
	requests := applySample(t, namespace, filepath.Join(suite.repository, "test", "e2e", "testdata", "values.yaml"))
	for _, request := range requests {
		sampleAnswers(t, namespace, request)
	}
	answers(t, namespace, suite.reach.service(namespace, "c02-web", 8080)+"/api/orders?x=1", "tenant="+namespace)

	web := newObject(namespace, "c02-web", 1)
	source := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "c02-environment"}}
	version := suite.reach.service(namespace, "c02-web", 8080) + "/version"
	load := startLoadOf(t, namespace, version, "tenant "+namespace)
	update(t, source, func(c *corev1.ConfigMap) { c.Data["max-body"] = "5m\n" })
	answers(t, namespace, version, "body 5m")
	waitForReady(t, web)
	load.finish(t, namespace, "a changed value")

	pod := onlyPod(t, web).Name
	update(t, source, func(c *corev1.ConfigMap) { c.Data["max-body"] = "5m; return 500" })
	isDegraded(t, web, v1alpha2.ReasonInvalidConfiguration, `ConfigMap "c02-templates", key "nginx.conf": line 6: the value of MAX_BODY`)
	if message := web.Status.BlockedBy[0].Message; strings.Contains(message, "return") {
		t.Errorf("the message has the value: %s", message)
	}
	update(t, source, func(c *corev1.ConfigMap) { c.Data = nil })
	isDegraded(t, web, v1alpha2.ReasonReferenceNotFound, `ConfigMap "c02-environment" has no key "max-body"`)
	update(t, source, func(c *corev1.ConfigMap) { c.Data = map[string]string{"max-body": "5m"} })
	waitForReady(t, web)
	if after := onlyPod(t, web).Name; after != pod {
		t.Errorf("Pod %s replaced %s, which was served before and after", after, pod)
	}

	testBackendReturns(t, namespace, requests[2])
}

// testBackendReturns deletes and creates the backend of a request to the router.
func testBackendReturns(t *testing.T, namespace string, request docs.Request) {
	t.Helper()
	router := onlyPod(t, newObject(namespace, "c13-router", 1))
	orders := newObject(namespace, "c13-orders", 1)
	must(t, suite.admin.Delete(t.Context(), orders))
	down := request
	down.Status, down.Text = 503, "service c13-orders is down"
	requestAnswers(t, namespace, down)

	orders = newObject(namespace, "c13-orders", 1)
	orders.Spec.Config = &v1alpha2.Config{Inline: "server {\n    listen 8080;\n    return 200 \"orders $request_uri\\n\";\n}\n"}
	must(t, suite.admin.Create(t.Context(), orders))
	waitForReady(t, orders)
	requestAnswers(t, namespace, request)
	after := onlyPod(t, newObject(namespace, "c13-router", 1))
	if after.UID != router.UID || after.Status.ContainerStatuses[0].RestartCount != 0 {
		t.Errorf("Pod %s of the router was restarted or replaced by %s", router.Name, after.Name)
	}
}
