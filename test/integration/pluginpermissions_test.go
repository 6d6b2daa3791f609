package integration

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/cmd/kubectl-nginx/command"
	"github.com/example/nginx-operator/cmd/kubectl-nginx/tree"
	"github.com/example/nginx-operator/internal/wellknown"
)

// TestStatusForRecommendedRoles verifies that status shows reasons and remedies to a user with
// nothing but one of the roles that docs/guide/multi-tenancy.md recommends, and names the missing
// permissions.
func TestStatusForRecommendedRoles(t *testing.T) {
	t.Parallel()
	namespace, _, _ := newReadyWeb(t, nil)
	blocked := newInstance(namespace, "blocked")
	blocked.Spec.Content = &v1alpha2.Content{ConfigMapRef: v1alpha2.ConfigMapReference{Name: "none"}}
	create(t, blocked)
	waitForCondition(t, namespace, "blocked", v1alpha2.ConditionDegraded, metav1.ConditionTrue, v1alpha2.ReasonReferenceNotFound)

	for _, name := range []string{"editor", "viewer"} {
		role := &rbacv1.ClusterRole{}
		text := must1(os.ReadFile("../../config/rbac/nginxoperator_" + name + "_role.yaml"))(t)
		must(t, yaml.UnmarshalStrict(text, role))
		user := namespace + "-" + name
		bind(t, namespace, user, role.Rules)

		wantAnswer(t, whenPermitted(t, namespace, "", user, "status", "web"), 0,
			"NginxOperator "+namespace+"/web  Ready  1/1", "├─ Conditions", "Deployment web  unknown", "last good",
			"you cannot get configmaps, services, networkpolicies.networking.k8s.io, deployments.apps\n",
			"you cannot list pods\n", "remedy: ask for the ClusterRole view in the namespace "+namespace)
		wantAnswer(t, nginx(t, namespace, "", "status", "blocked", "--as", user), 0,
			`ReferenceNotFound: spec.content.configMapRef.name: ConfigMap "none" not found in this namespace; create it`,
			"remedy: create it, or correct the reference.")
		wantAnswer(t, nginx(t, namespace, "", "status", "--as", user), 0, namespace+"/web  Ready", namespace+"/blocked  NotReady")

		var report tree.Report
		must(t, yaml.UnmarshalStrict([]byte(nginx(t, namespace, "", "status", "web", "-o", "json", "--as", user).out), &report))
		last := report.Forbidden[len(report.Forbidden)-1]
		if last.Verb != "list" || last.Resource != "pods" || !strings.Contains(last.Message, `cannot list resource "pods"`) {
			t.Errorf("the last missing permission is %+v", last)
		}
	}
}

// TestPluginPermissions verifies that the permissions in the help of each command suffice, and that
// the command fails without any of those that each call uses.
func TestPluginPermissions(t *testing.T) {
	t.Parallel()
	namespace, object, _ := newWeb(t, func(s *v1alpha2.NginxOperatorSpec) {
		s.Config, s.Monitoring = &v1alpha2.Config{Inline: servers}, &v1alpha2.Monitoring{Enabled: ptr.To(true)}
	})
	makeReady(t, namespace, "web")
	runPod(t, object)
	runExporter(t, namespace)
	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Config.Inline = strings.Replace(servers, "204", "200", 1) })
	waitForCondition(t, namespace, "web", v1alpha2.ConditionProgressing, metav1.ConditionTrue, v1alpha2.ReasonRolloutInProgress)

	manifest := manifestOf(t, v1alpha2.NginxOperatorSpec{Config: &v1alpha2.Config{Inline: servers}, Replicas: ptr.To[int32](2)})
	calls := []struct {
		args []string
		code int
		want string
	}{
		{[]string{"status", "web"}, 0, "1 of 1 ready"},
		{[]string{"plan", "-f", "-"}, 1, "~ NginxOperator web changes"},
		{[]string{"logs", "web"}, 0, ""}, // the Pod has no node
		{[]string{"config", "web", "--diff"}, 1, "-    return 204;"},
		{[]string{"top", "web"}, 1, "failed to scrape the exporter"}, // and no address
		{[]string{"rollback", "web", "--dry-run"}, 0, "(server dry run)"},
		{[]string{"restart", "web"}, 0, "web restarted"},
		{[]string{"pause", "web"}, 0, "web paused"},
		{[]string{"resume", "web"}, 0, "web resumed"},
	}
	permissions := command.Permissions()
	if len(calls) != len(permissions) {
		t.Errorf("%d commands are called, and %d have permissions", len(calls), len(permissions))
	}
	for _, call := range calls {
		var all, required []rbacv1.PolicyRule
		for _, permission := range permissions[call.args[0]] {
			all = append(all, permission.Rules()...)
			if permission.For == "" && permission.Shows == "" {
				required = append(required, permission.Rules()...)
			}
		}
		bind(t, namespace, call.args[0]+"-all", all)
		for i, rule := range required {
			bind(t, namespace, fmt.Sprintf("%s-%d", call.args[0], i), withoutRule(all, rule))
		}

		for i, rule := range required {
			failed := nginx(t, namespace, manifest, append(call.args, "--as", fmt.Sprintf("%s-%d", call.args[0], i))...)
			want := fmt.Sprintf("cannot %s resource %q", rule.Verbs[0], rule.Resources[0])
			if !strings.Contains(failed.errors, want) {
				t.Errorf("%v without %s %s: code %d: %s", call.args, rule.Verbs[0], rule.Resources[0], failed.code, failed.errors)
			}
		}
		wantAnswer(t, whenPermitted(t, namespace, manifest, call.args[0]+"-all", call.args...), call.code, call.want)
	}
}

// withoutRule returns the rules without one.
func withoutRule(rules []rbacv1.PolicyRule, omitted rbacv1.PolicyRule) []rbacv1.PolicyRule {
	return slices.DeleteFunc(slices.Clone(rules), func(rule rbacv1.PolicyRule) bool { return cmp.Equal(rule, omitted) })
}

// runExporter reports the exporter of the Pod of an instance as running, like the kubelet.
func runExporter(t *testing.T, namespace string) {
	t.Helper()
	pods := &corev1.PodList{}
	must(t, suite.admin.List(t.Context(), pods, client.InNamespace(namespace)))
	for i := range pods.Items {
		pods.Items[i].Status.InitContainerStatuses = []corev1.ContainerStatus{{
			Name: wellknown.ExporterContainer, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		}}
		must(t, suite.admin.Status().Update(t.Context(), &pods.Items[i]))
	}
}

// bind gives a user a Role with these rules.
func bind(t *testing.T, namespace, user string, rules []rbacv1.PolicyRule) {
	t.Helper()
	meta := metav1.ObjectMeta{Namespace: namespace, Name: user}
	create(t, &rbacv1.Role{ObjectMeta: meta, Rules: rules})
	create(t, &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})
}

// whenPermitted runs kubectl nginx as a user whose role takes effect a moment after the write.
func whenPermitted(t *testing.T, namespace, stdin, user string, args ...string) (answer printed) {
	t.Helper()
	waitFor(t, func() error {
		answer = nginx(t, namespace, stdin, append(args, "--as", user)...)
		if strings.Contains(answer.errors, "(Forbidden)") {
			return errors.New(answer.errors)
		}
		return nil
	})
	return answer
}
