package integration

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/cmd/kubectl-nginx/preview"
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

// manifestOf returns the manifest of the instance "web" with this spec.
func manifestOf(t *testing.T, spec v1alpha2.NginxOperatorSpec) string {
	t.Helper()
	raw := must1(yaml.Marshal(map[string]any{
		"apiVersion": v1alpha2.GroupVersion.String(), "kind": "NginxOperator", "metadata": map[string]any{"name": "web"}, "spec": spec,
	}))(t)
	return string(raw)
}

// versions returns the resourceVersions of an instance and its children.
func versions(t *testing.T, namespace, name string) map[string]string {
	t.Helper()
	out := map[string]string{}
	found := must1(childrenOf(t.Context(), namespace, name))(t)
	object := newInstance(namespace, name)
	must(t, suite.admin.Get(t.Context(), client.ObjectKeyFromObject(object), object))
	all := []client.Object{object, found.deployment, found.service, found.policy}
	for i := range found.configMaps {
		all = append(all, &found.configMaps[i])
	}
	for _, one := range all {
		out[fmt.Sprintf("%T %s", one, one.GetName())] = one.GetResourceVersion()
	}
	return out
}

func planOf(t *testing.T, got printed) preview.Plan {
	t.Helper()
	var out preview.Plan
	if err := yaml.UnmarshalStrict([]byte(got.out), &out); err != nil {
		t.Fatalf("%v:\n%s\n%s", err, got.out, got.errors)
	}
	return out
}

// changed returns the children that a plan changes, as action and kind. It leaves out the names,
// because names of ConfigMaps contain hashes.
func changed(object preview.Object) []string {
	var out []string
	for _, child := range object.Children {
		out = append(out, child.Action+" "+child.Kind)
	}
	return out
}

// TestPlanComesTrue verifies that a plan predicts which children the operator changes, and whether
// it replaces Pods. A plan writes nothing. After the change, there is nothing left to plan. There
// are no ReplicaSets here, so the operator deletes the previous ConfigMap at once.
func TestPlanComesTrue(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	spec := v1alpha2.NginxOperatorSpec{Replicas: ptr.To[int32](1), Config: &v1alpha2.Config{Inline: servers}}
	object := newInstance(namespace, "web")
	object.Spec = *spec.DeepCopy()
	serve(t, object)
	unchanged := nginx(t, namespace, manifestOf(t, spec), "plan", "-f", "-")
	wantAnswer(t, unchanged, 0, "= NginxOperator web does not change", "Pods: none are replaced")
	wantAnswer(t, nginx(t, namespace, manifestOf(t, spec), "plan", "-f", "-", "--server-side"), 0)

	for _, step := range []struct {
		name    string
		change  func(*v1alpha2.NginxOperatorSpec)
		changes []string
		rolls   bool
	}{
		{
			"only the Service", func(s *v1alpha2.NginxOperatorSpec) {
				s.Service = &v1alpha2.Service{Annotations: map[string]string{"example.com/a": "1"}}
			},
			[]string{"update Service"},
			false,
		},
		{
			"another configuration", func(s *v1alpha2.NginxOperatorSpec) {
				s.Config.Inline = strings.Replace(servers, "204", "200", 1)
			},
			[]string{"create ConfigMap", "update Deployment", "delete ConfigMap"},
			true,
		},
		{
			"more replicas", func(s *v1alpha2.NginxOperatorSpec) { s.Replicas = ptr.To[int32](2) },
			[]string{"update Deployment", "create PodDisruptionBudget"},
			false,
		},
		{
			"a field of the Pods", func(s *v1alpha2.NginxOperatorSpec) { s.DrainSeconds = ptr.To[int32](60) },
			[]string{"create ConfigMap", "update Deployment", "delete ConfigMap"},
			true,
		},
		{
			"no policy", func(s *v1alpha2.NginxOperatorSpec) {
				s.NetworkPolicy = &v1alpha2.NetworkPolicy{Mode: v1alpha2.NetworkPolicyNone}
			},
			[]string{"delete NetworkPolicy"},
			false,
		},
	} {
		before := versions(t, namespace, "web")
		running := must1(childrenOf(t.Context(), namespace, "web"))(t).deployment.Spec.Template
		step.change(&spec)
		manifest := manifestOf(t, spec)
		got := nginx(t, namespace, manifest, "plan", "-f", "-", "-o", "yaml")
		plan := planOf(t, got)
		if got.code != 1 || len(plan.Objects) != 1 || plan.Objects[0].Action != preview.Update || len(plan.Objects[0].Diff) == 0 {
			t.Fatalf("%s: code %d, plan %+v", step.name, got.code, plan)
		}
		if diff := cmp.Diff(step.changes, changed(plan.Objects[0])); diff != "" || plan.Objects[0].Pods.Roll != step.rolls {
			t.Errorf("%s: Pods %+v, changes (-want +got):\n%s", step.name, plan.Objects[0].Pods, diff)
		}
		if diff := cmp.Diff(before, versions(t, namespace, "web")); diff != "" {
			t.Fatalf("%s: the plan wrote something:\n%s", step.name, diff)
		}
		update(t, object, func(o *v1alpha2.NginxOperator) { spec.DeepCopyInto(&o.Spec) })
		waitFor(t, func() error {
			if left := nginx(t, namespace, manifest, "plan", "-f", "-"); left.code != 0 {
				return fmt.Errorf("%s: still planned:\n%s%s", step.name, left.out, left.errors)
			}
			return nil
		})
		waitForMarker(t, namespace) // the plan does not show the name of the record on the Deployment
		rolled := must1(childrenOf(t.Context(), namespace, "web"))(t).deployment.Spec.Template
		if differs := cmp.Diff(running, rolled) != ""; differs != step.rolls {
			t.Errorf("%s: Pods roll: %t, want %t", step.name, differs, step.rolls)
		}
	}
}

// TestPlanOfWhatIsNew verifies that a plan reports a rejection by admission as an error with the
// same message, and shows warnings. For an instance that does not exist, the plan creates the
// instance and all of its children. It considers a ConfigMap in the same manifest.
func TestPlanOfWhatIsNew(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	refused := manifestOf(t, v1alpha2.NginxOperatorSpec{Config: &v1alpha2.Config{Inline: "server { no_such_directive; }"}})
	wantAnswer(t, nginx(t, namespace, refused, "plan", "-f", "-"), 2, "Error from server (Invalid)", "no_such_directive")
	misspelt := strings.Replace(refused, "config:", "confg:", 1)
	wantAnswer(t, nginx(t, namespace, misspelt, "plan", "-f", "-"), 2, `unknown field "spec.confg"`)

	fromConfigMap := manifestOf(t, v1alpha2.NginxOperatorSpec{
		Config: &v1alpha2.Config{ConfigMapRef: &v1alpha2.ConfigMapKeyReference{Name: "servers", Key: "a"}},
	})
	got := nginx(t, namespace, fromConfigMap, "plan", "-f", "-", "-o", "yaml")
	blocked := planOf(t, got).Objects[0]
	if got.code != 1 || len(blocked.Children) > 0 || len(blocked.BlockedBy) != 1 ||
		blocked.BlockedBy[0].Reason != v1alpha2.ReasonReferenceNotFound {
		t.Fatalf("without its ConfigMap: %d, %+v", got.code, blocked)
	}
	configMap := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: servers}\ndata: {a: " + fmt.Sprintf("%q", servers) + "}\n---\n"
	got = nginx(t, namespace, configMap+fromConfigMap, "plan", "-f", "-", "-o", "yaml")
	plan := planOf(t, got)
	want := []string{"create ConfigMap", "create Service", "create NetworkPolicy", "create Deployment"}
	if diff := cmp.Diff(want, changed(plan.Objects[1])); diff != "" || *plan.Objects[1].Pods != (preview.Pods{After: 1}) {
		t.Errorf("Pods %+v, changes (-want +got):\n%s", plan.Objects[1].Pods, diff)
	}
	list := &v1alpha2.NginxOperatorList{}
	if must(t, suite.admin.List(t.Context(), list, client.InNamespace(namespace))); len(list.Items) > 0 {
		t.Error("a plan has created an object")
	}

	old := "apiVersion: operator.example.com/v1alpha1\nkind: NginxOperator\nmetadata: {name: old}\nspec: {port: 8081, replicas: 3}\n"
	wantAnswer(t, nginx(t, namespace, old, "plan", "-f", "-"), 1,
		"Warning: "+deprecation, "+ NginxOperator old is created", "+ Deployment old is created", "Pods: 3 are created")
	create(t, newInstance(namespace, "old"))
	waitForChildren(t, namespace, "old")
	wantAnswer(t, nginx(t, namespace, old, "plan", "-f", "-"), 1, "~ NginxOperator old changes", "~ Deployment old changes",
		"Pods: a rolling update replaces all 1")
}

// TestPlanShowsEveryRefusal verifies that a plan asks the API server about every child, with the
// user's permissions, and shows each rejection with its field. It shows no change that the operator
// would not make because of a rejection.
func TestPlanShowsEveryRefusal(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	create(t, newInstance(namespace, "web"))
	waitForChildren(t, namespace, "web")
	manifest := manifestOf(t, v1alpha2.NginxOperatorSpec{
		Replicas:      ptr.To[int32](2),
		NetworkPolicy: &v1alpha2.NetworkPolicy{From: []networkingv1.NetworkPolicyPeer{{}}},
		Expose:        &v1alpha2.Expose{Ingress: &v1alpha2.Ingress{Hosts: []v1alpha2.IngressHost{{Host: "A.example.com"}}}},
		Patches:       []v1alpha2.Patch{patchOf("PodDisruptionBudget", "spec: {minAvailable: 1}")},
	})
	got := nginx(t, namespace, manifest, "plan", "-f", "-", "-o", "yaml")
	plan := planOf(t, got).Objects[0]
	var told []string
	for _, blocker := range plan.BlockedBy {
		field, _, _ := strings.Cut(blocker.Message, ":")
		told = append(told, blocker.Reason+" "+field)
	}
	want := []string{
		"InvalidConfiguration spec.networkPolicy.from[0]", "InvalidConfiguration spec.patches[0].patch",
		"InvalidConfiguration spec.expose.ingress.hosts[0].host",
	}
	if diff := cmp.Diff(want, told); diff != "" || got.code != 1 {
		t.Errorf("code %d, blockers (-want +got):\n%s", got.code, diff)
	}
	if diff := cmp.Diff([]string(nil), changed(plan)); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}

// TestPlanWithFewPermissions verifies that a user who may only write NginxOperators still sees the
// changes that the operator would make, and that the API server did not check them.
func TestPlanWithFewPermissions(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "dev"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"operator.example.com"}, Resources: []string{"nginxoperators"}, Verbs: []string{"get", "create", "patch"}},
		{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list"}},
	}}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: role.ObjectMeta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "dev-of-" + namespace}},
	}
	object := newInstance(namespace, "web")
	for _, one := range []client.Object{role, binding, object} {
		create(t, one)
	}
	waitForChildren(t, namespace, "web")
	manifest := manifestOf(t, v1alpha2.NginxOperatorSpec{Image: noSuchImage, Replicas: ptr.To[int32](2)})
	waitFor(t, func() error { // the role takes effect a moment after the write
		got := nginx(t, namespace, manifest, "plan", "-f", "-", "-o", "yaml", "--as", "dev-of-"+namespace)
		if got.code != 1 {
			return fmt.Errorf("code %d: %s", got.code, got.errors)
		}
		found := planOf(t, got).Objects[0]
		want := []string{"update ConfigMap", "update Service", "update NetworkPolicy", "update Deployment", "create PodDisruptionBudget"}
		if diff := cmp.Diff(want, changed(found)); diff != "" || !found.Pods.Roll {
			return fmt.Errorf("Pods %+v, changes (-want +got):\n%s", found.Pods, diff)
		}
		for _, child := range found.Children {
			if !child.Unchecked {
				return fmt.Errorf("%s %s counts as checked by the API server", child.Kind, child.Name)
			}
		}
		return nil
	})
}

// TestStatusOfInstances verifies that status shows an instance as a tree and as structured output,
// and lists the instances of a namespace.
func TestStatusOfInstances(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	create(t, newInstance(namespace, "web"))
	waitForChildren(t, namespace, "web")
	makeReady(t, namespace, "web")
	blocked := newInstance(namespace, "blocked")
	blocked.Spec.Content = &v1alpha2.Content{ConfigMapRef: v1alpha2.ConfigMapReference{Name: "none"}}
	create(t, blocked)
	waitForCondition(t, namespace, "blocked", v1alpha2.ConditionDegraded, metav1.ConditionTrue, v1alpha2.ReasonReferenceNotFound)

	wantAnswer(t, nginx(t, namespace, "", "status", "web"), 0,
		"NginxOperator "+namespace+"/web  Ready  1/1", "├─ Conditions", "Deployment web  1 of 1 ready, 1 updated", "last good")
	wantAnswer(t, nginx(t, namespace, "", "status"), 0, namespace+"/web  Ready", namespace+"/blocked  NotReady",
		`ReferenceNotFound: spec.content.configMapRef.name: ConfigMap "none" does not exist`, "remedy: create it, or correct the reference.")
	wantAnswer(t, nginx(t, "default", "", "status", "-A"), 0, namespace+"/web  Ready", namespace+"/blocked  NotReady")
	wantAnswer(t, nginx(t, namespace, "", "status", "-l", "no=such"), 0, "No resources found in "+namespace+" namespace.")
	wantAnswer(t, nginx(t, namespace, "", "status", "none"), 2,
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
	wantAnswer(t, nginx(t, namespace, "", "restart", "web", "--wait", "--timeout=1s"), 2,
		"error: timed out waiting for NginxOperator \"web\" to be ready: ")

	wantAnswer(t, nginx(t, namespace, "", "resume", "web"), 2, `error: NginxOperator "web" is not paused`)
	wantAnswer(t, nginx(t, namespace, "", "pause", "web"), 0, "nginxoperator.operator.example.com/web paused\n")
	wantAnswer(t, nginx(t, namespace, "", "pause", "web"), 2, `error: NginxOperator "web" is already paused`)
	wantAnswer(t, nginx(t, namespace, "", "restart", "web"), 2,
		"is paused, so Pods cannot be restarted. Resume it first: kubectl nginx resume web")
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
	wantAnswer(t, nginx(t, namespace, "", "rollback", "web", "--yes"), 2, "has no last good revision: its replicas have never all been ready")
	wantAnswer(t, nginx(t, namespace, "", "config", "web"), 2, `error: NginxOperator "web" has no Pods`)
	wantAnswer(t, nginx(t, namespace, "", "logs", "web"), 2, `error: NginxOperator "web" has no Pods`)
	makeReady(t, namespace, "web")
	runPod(t, object)
	wantAnswer(t, nginx(t, namespace, "", "config", "web"), 0, "# configuration file /etc/nginx-operator/servers.conf:\n"+servers)
	wantAnswer(t, nginx(t, namespace, "", "config", "web", "--diff"), 0)
	wantAnswer(t, nginx(t, namespace, "", "rollback", "web", "--yes"), 2, "already has the spec of the last good revision")

	update(t, object, func(o *v1alpha2.NginxOperator) {
		o.Spec.Config.Inline, o.Spec.Replicas = strings.Replace(servers, "204", "200", 1), ptr.To[int32](3)
	})
	waitForCondition(t, namespace, "web", v1alpha2.ConditionProgressing, metav1.ConditionTrue, v1alpha2.ReasonRolloutInProgress)
	wantAnswer(t, nginx(t, namespace, "", "config", "web", "--diff"), 1, "-    return 204;\n+    return 200;\n")
	wantAnswer(t, nginx(t, namespace, "", "rollback", "web", "--dry-run"), 0,
		"-          return 200;\n+          return 204;\n", "(server dry run)")
	wantAnswer(t, nginx(t, namespace, "no\n", "rollback", "web"), 2, "Roll back to this spec? [y/N]", "nothing was changed")
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
