package integration

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/docs"
	"github.com/example/nginx-operator/test/harness"
)

// TestFirstInstance runs the commands of docs/guide/first-instance.md as a user who has only the
// editor role, up to the section that requires the role edit. The test writes the status of the
// Deployment, because no Pods run here.
func TestFirstInstance(t *testing.T) {
	t.Parallel()
	const namespace, name, roles, edit = "bakery", "hello", "Get a namespace and the editor role", "Continue with the role edit"
	page := must1(os.ReadFile("../../docs/guide/first-instance.md"))(t)
	journey := must1(docs.ParseJourney(string(page)))(t)
	t.Cleanup(func() {
		object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
		must(t, suite.admin.Delete(context.Background(), object))
	})
	admin, jane, dir := filepath.Join(suite.dir, "admin.kubeconfig"), filepath.Join(t.TempDir(), "jane.kubeconfig"), t.TempDir()
	must(t, harness.WriteKubeconfigAs("jane", admin, jane))

	commands := 0
	for _, step := range journey.Steps {
		if step.Section == edit {
			break
		}
		for file, text := range step.Files {
			must(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600))
		}
		if strings.Contains(step.Script, " wait ") {
			waitForStatus(t, namespace, name, func(*v1alpha2.NginxOperator) error { return nil })
			rollOut(t, namespace, name)
		}
		kubeconfig := jane
		if step.Section == roles {
			kubeconfig = admin
		}
		output, err := kubectl(t, kubeconfig, dir, step.Script)
		if err == nil {
			err = step.Check(output)
		}
		if err != nil {
			t.Fatalf("%s:\n%s\n%v\n%s", step.Section, step.Script, err, output)
		}
		commands += len(step.Commands)
	}
	if commands < 9 {
		t.Errorf("%d commands, want those of all sections up to %q", commands, edit)
	}

	for _, resource := range []string{"pods", "configmaps", "secrets"} {
		refusal := fmt.Sprintf(`%s is forbidden: User "jane" cannot list resource %q`, resource, resource)
		if output, err := kubectl(t, jane, dir, "kubectl -n "+namespace+" get "+resource); err == nil || !strings.Contains(output, refusal) {
			t.Errorf("want %q, got %v:\n%s", refusal, err, output)
		}
	}
}

// kubectl runs a script of kubectl commands in a directory, and returns its output and its error.
func kubectl(t *testing.T, kubeconfig, dir, script string) (string, error) {
	t.Helper()
	tools := must1(filepath.Abs(os.Getenv("KUBEBUILDER_ASSETS")))(t)
	cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+tools+":"+os.Getenv("PATH"), "KUBECONFIG="+kubeconfig)
	output, err := cmd.CombinedOutput()
	return string(output), err
}
