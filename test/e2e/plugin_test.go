package e2e

// kubectl nginx as a kubectl plugin, with real Pods.
//
//   - status shows the Pods.
//   - plan predicts correctly whether a change replaces the Pods.
//   - logs shows lines of each Pod.
//   - config shows the configuration that nginx reads.
//   - restart replaces the Pods.

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/example/nginx-operator/api/v1alpha2"
)

func testPlugin(t *testing.T) {
	namespace := newNamespace(t, restricted)
	object := newInstance(t, namespace, "web", 2)
	pods, err := podsOf(t.Context(), object)
	must(t, err)
	status := kubectl(t, "nginx", "status", "web", "-n", namespace)
	for _, words := range []string{
		"NginxOperator " + namespace + "/web  Ready  2/2", "Pod " + pods[0].Name + "  ready", "Pod " + pods[1].Name + "  ready", "last good",
	} {
		if !strings.Contains(status, words) {
			t.Errorf("status does not say %q:\n%s", words, status)
		}
	}

	rolls := map[string]bool{
		"image: " + otherImage:                         true,
		`service: {annotations: {example.com/a: "1"}}`: false,
	}
	for field, roll := range rolls {
		plan, words := planOf(t, namespace, field), "Pods: none are replaced"
		if roll {
			words = "Pods: a rolling update replaces all 2"
		}
		if !strings.Contains(plan, words) {
			t.Errorf("the plan for %s does not say %q:\n%s", field, words, plan)
		}
	}
	before := uidsOf(t, object)
	update(t, object, func(o *v1alpha2.NginxOperator) {
		o.Spec.Service = &v1alpha2.Service{Annotations: map[string]string{"example.com/a": "1"}}
	})
	waitForReady(t, object)
	if now := uidsOf(t, object); !slices.Equal(before, now) {
		t.Errorf("the plan was wrong: Pods %v, now %v", before, now)
	}

	for _, pod := range pods {
		if logs := kubectl(t, "nginx", "logs", "web", "-n", namespace); !strings.Contains(logs, "[pod/"+pod.Name+"/nginx] ") {
			t.Errorf("logs has no line of %s:\n%s", pod.Name, logs)
		}
	}
	_, config, _ := strings.Cut(kubectl(t, "nginx", "config", "web", "-n", namespace), "nginx.conf:\n")
	read := kubectl(t, "exec", "-n", namespace, pods[0].Name, "-c", "nginx", "--", "nginx", "-T", "-c", "/etc/nginx-operator/nginx.conf")
	if config == "" || !strings.Contains(read, config) {
		t.Errorf("config shows\n%s\nand nginx reads\n%s", config, read)
	}
	if diff := kubectl(t, "nginx", "config", "web", "-n", namespace, "--diff"); diff != "" {
		t.Errorf("what runs is what is declared, and differs:\n%s", diff)
	}

	kubectl(t, "nginx", "restart", "web", "-n", namespace, "--wait")
	must(t, ready(t.Context(), object))
	for _, uid := range uidsOf(t, object) {
		if slices.Contains(before, uid) {
			t.Errorf("Pod %s was not replaced by the restart", uid)
		}
	}
}

// planOf returns the output of kubectl nginx plan for the instance with one more field. The field
// must change the instance.
func planOf(t *testing.T, namespace, field string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "web.yaml")
	manifest := "apiVersion: operator.example.com/v1alpha2\nkind: NginxOperator\nmetadata: {name: web}\n" +
		"spec:\n  replicas: 2\n  " + field + "\n"
	must(t, os.WriteFile(file, []byte(manifest), 0o600))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := command(ctx, "kubectl", "nginx", "plan", "-n", namespace, "-f", file)
	if err == nil || !strings.Contains(err.Error(), "exit status 1") {
		t.Errorf("a plan with differences ends with %v", err)
	}
	return out
}
