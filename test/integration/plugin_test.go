package integration

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/cmd/kubectl-nginx/tree"
	"github.com/example/nginx-operator/test/harness"
)

// plugin returns the path of the kubectl nginx program. It writes a kubeconfig with all RBAC
// permissions.
var plugin = sync.OnceValues(func() (string, error) {
	program, err := harness.Program("kubectl-nginx")
	if err != nil {
		return "", err
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["test"] = &clientcmdapi.Cluster{Server: suite.config.Host, CertificateAuthorityData: suite.config.CAData}
	config.AuthInfos["admin"] = &clientcmdapi.AuthInfo{ClientCertificateData: suite.config.CertData, ClientKeyData: suite.config.KeyData}
	config.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "admin"}
	config.CurrentContext = "test"
	return program, clientcmd.WriteToFile(*config, pluginKubeconfig())
})

func pluginKubeconfig() string { return filepath.Join(suite.dir, "kubectl-nginx.kubeconfig") }

// printed is the output of a command, and its exit code.
type printed struct {
	out, errors string
	code        int
}

// nginx runs kubectl nginx in a namespace.
func nginx(t *testing.T, namespace, stdin string, args ...string) printed {
	t.Helper()
	program := must1(plugin())(t)
	cmd := exec.CommandContext(t.Context(), program, append([]string{"-n", namespace}, args...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+pluginKubeconfig(), "HOME="+suite.dir)
	var out, errOut strings.Builder
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errOut
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return printed{out.String(), errOut.String(), cmd.ProcessState.ExitCode()}
}

// wantAnswer requires an exit code, and words on standard output or standard error.
func wantAnswer(t *testing.T, got printed, code int, words ...string) {
	t.Helper()
	if got.code != code {
		t.Errorf("exit code %d, want %d", got.code, code)
	}
	for _, word := range words {
		if !strings.Contains(got.out+got.errors, word) {
			t.Errorf("it does not say %q", word)
		}
	}
	if t.Failed() {
		t.Fatalf("standard output:\n%s\nstandard error:\n%s", got.out, got.errors)
	}
}

// TestStatusOfInstances verifies that status shows an instance as a tree and as structured output,
// and lists the instances of a namespace.
func TestStatusOfInstances(t *testing.T) {
	t.Parallel()
	namespace, _, _ := newReadyWeb(t, nil)
	blocked := newInstance(namespace, "blocked")
	blocked.Spec.Content = &v1alpha2.Content{ConfigMapRef: v1alpha2.ConfigMapReference{Name: "none"}}
	create(t, blocked)
	waitForCondition(t, namespace, "blocked", v1alpha2.ConditionDegraded, metav1.ConditionTrue, v1alpha2.ReasonReferenceNotFound)

	wantAnswer(t, nginx(t, namespace, "", "status", "web"), 0,
		"NginxOperator "+namespace+"/web  Ready  1/1", "├─ Conditions", "Deployment web  1 of 1 ready, 1 updated", "last good")
	wantAnswer(t, nginx(t, namespace, "", "status"), 0, namespace+"/web  Ready", namespace+"/blocked  NotReady",
		`ReferenceNotFound: spec.content.configMapRef.name: ConfigMap "none" not found`, "remedy: create it, or correct the reference.")
	wantAnswer(t, nginx(t, "default", "", "status", "-A"), 0, namespace+"/web  Ready", namespace+"/blocked  NotReady")
	wantAnswer(t, nginx(t, namespace, "", "status", "-l", "no=such"), 0, "No resources found in "+namespace+" namespace.")
	wantAnswer(t, nginx(t, namespace, "", "status", "none"), 1,
		`Error from server (NotFound): nginxoperators.operator.example.com "none" not found`)

	var report tree.Report
	must(t, yaml.UnmarshalStrict([]byte(nginx(t, namespace, "", "status", "web", "-o", "json").out), &report))
	var kinds []string
	for _, child := range report.Children {
		kinds = append(kinds, child.Kind)
	}
	if diff := cmp.Diff([]string{"ConfigMap", "Service", "NetworkPolicy", "Deployment"}, kinds); diff != "" || report.Ready != "True" {
		t.Errorf("ready %s, children (-want +got):\n%s", report.Ready, diff)
	}
	if len(report.Revisions) != 1 || report.Revisions[0].State != tree.LastGood {
		t.Errorf("revisions %+v", report.Revisions)
	}
	wantAnswer(t, nginx(t, namespace, "", "__complete", "restart", ""), 0, "blocked\nweb\n")
}

// TestRestartPauseResume verifies that restart, pause, and resume set their fields of the spec, and
// that restart can wait for the rollout.
func TestRestartPauseResume(t *testing.T) {
	t.Parallel()
	namespace, object, before := newReadyWeb(t, nil)

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	rolled := make(chan error, 1)
	go func() { // plays the Deployment controller
		rolled <- eventually(ctx, func() error {
			now, err := childrenOf(ctx, namespace, "web")
			if err == nil && now.deployment.Generation == before.deployment.Generation {
				err = errors.New("the Deployment has not changed")
			}
			return err
		})
		rollOut(t, namespace, "web")
	}()
	wantAnswer(t, nginx(t, namespace, "", "restart", "web", "--wait"), 0,
		"nginxoperator.operator.example.com/web restarted\n", "nginxoperator.operator.example.com/web is ready: 1 of 1 replicas are ready\n")
	must(t, <-rolled)
	must(t, suite.admin.Get(t.Context(), client.ObjectKeyFromObject(object), object))
	if object.Spec.ForceRedeploy == "" {
		t.Error("spec.forceRedeploy is not set")
	}
	wantAnswer(t, nginx(t, namespace, "", "restart", "web", "--wait", "--timeout=1s"), 1,
		"error: timed out waiting for NginxOperator \"web\" to be ready: ")

	wantAnswer(t, nginx(t, namespace, "", "resume", "web"), 1, `error: NginxOperator "web" is not paused`)
	wantAnswer(t, nginx(t, namespace, "", "pause", "web"), 0, "nginxoperator.operator.example.com/web paused\n")
	wantAnswer(t, nginx(t, namespace, "", "pause", "web"), 1, `error: NginxOperator "web" is already paused`)
	wantAnswer(t, nginx(t, namespace, "", "restart", "web"), 1,
		"is paused: the operator does not restart its Pods. Resume it first: kubectl nginx resume web -n "+namespace)
	must(t, suite.admin.Get(t.Context(), client.ObjectKeyFromObject(object), object))
	if !object.Spec.Paused {
		t.Error("spec.paused is not set")
	}
	wantAnswer(t, nginx(t, namespace, "", "resume", "web"), 0, "nginxoperator.operator.example.com/web resumed\n")
	must(t, suite.admin.Get(t.Context(), client.ObjectKeyFromObject(object), object))
	if object.Spec.Paused {
		t.Error("spec.paused is still set")
	}
}

// TestConfigAndRollback verifies that config compares the running configuration with the spec
// during a rollout. rollback reapplies the last good spec with the current replicas.
func TestConfigAndRollback(t *testing.T) {
	t.Parallel()
	namespace, object, _ := newWeb(t, func(s *v1alpha2.NginxOperatorSpec) { s.Config = &v1alpha2.Config{Inline: servers} })
	wantAnswer(t, nginx(t, namespace, "", "rollback", "web", "--yes"), 1, "has no last good revision: its replicas have never all been ready")
	wantAnswer(t, nginx(t, namespace, "", "config", "web"), 2, `error: NginxOperator "web" has no Pods`)
	wantAnswer(t, nginx(t, namespace, "", "logs", "web"), 1, `error: NginxOperator "web" has no Pods`)
	makeReady(t, namespace, "web")
	runPod(t, object)
	wantAnswer(t, nginx(t, namespace, "", "config", "web"), 0, "# configuration file /etc/nginx-operator/servers.conf:\n"+servers)
	wantAnswer(t, nginx(t, namespace, "", "config", "web", "--diff"), 0)
	wantAnswer(t, nginx(t, namespace, "", "rollback", "web", "--yes"), 1,
		`nothing to roll back: the Pods of NginxOperator "web" run its spec`)

	update(t, object, func(o *v1alpha2.NginxOperator) {
		o.Spec.Config.Inline, o.Spec.Replicas = strings.Replace(servers, "204", "200", 1), ptr.To[int32](3)
	})
	waitForCondition(t, namespace, "web", v1alpha2.ConditionProgressing, metav1.ConditionTrue, v1alpha2.ReasonRolloutInProgress)
	wantAnswer(t, nginx(t, namespace, "", "config", "web", "--diff"), 1, "-    return 204;\n+    return 200;\n")
	wantAnswer(t, nginx(t, namespace, "", "rollback", "web", "--dry-run"), 0,
		"-          return 200;\n+          return 204;\n", "(server dry run)")
	wantAnswer(t, nginx(t, namespace, "no\n", "rollback", "web"), 1, "Roll back to this spec? [y/N]", "nothing was changed")
	must(t, suite.admin.Get(t.Context(), client.ObjectKeyFromObject(object), object))
	if object.Generation != 2 {
		t.Fatalf("a dry run, or one that was not confirmed, made generation %d", object.Generation)
	}
	wantAnswer(t, nginx(t, namespace, "y\n", "rollback", "web"), 0, "nginxoperator.operator.example.com/web rolled back\n")
	must(t, suite.admin.Get(t.Context(), client.ObjectKeyFromObject(object), object))
	if object.Spec.Config.Inline != servers || *object.Spec.Replicas != 3 {
		t.Errorf("the spec is %+v", object.Spec)
	}
}

// runPod creates the Pod of an instance and its ReplicaSet, like the controllers. The ReplicaSet
// retains the ConfigMap that the Pod mounts.
func runPod(t *testing.T, object *v1alpha2.NginxOperator) {
	t.Helper()
	set := replicaSet(must1(childrenOf(t.Context(), object.Namespace, object.Name))(t).deployment)
	pod := &corev1.Pod{Spec: *set.Spec.Template.Spec.DeepCopy()}
	pod.Namespace, pod.Name, pod.Labels = object.Namespace, set.Name+"-x", set.Spec.Template.Labels
	createSeen(t, object, set)
	create(t, pod)
}
