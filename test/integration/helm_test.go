package integration

// The Helm chart with Helm 3 and Helm 4, by the commands of docs/guide/helm.md, on an API server of
// its own. No operator runs, and no webhook is called.
//
//   - An upgrade replaces the objects of a release. The CA that the operator writes stays in the CRD
//     and in the webhook configurations, under the three-way merge of Helm 3 and the server-side
//     apply of Helm 4.
//   - The values for the port of the webhooks and the network of the nodes reach the operator.
//   - After an uninstallation, only the CRD and the instances are there. A new installation adopts
//     them.
//   - A release continues as an installation by kubectl, and the other way around. Another release is
//     refused as long as the objects belong to the first one.
//   - With watched namespaces, the operator has exactly the permissions of its ClusterRoles there,
//     and those of manager-cluster-role elsewhere.

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/docs"
	"github.com/example/nginx-operator/internal/scheme"
	"github.com/example/nginx-operator/internal/wellknown"
	"github.com/example/nginx-operator/test/harness/apiserver"
)

// chartRelease runs the commands for the chart on an API server.
type chartRelease struct {
	admin client.Client
	// chart is the directory of the chart. name is the name of the release.
	chart, name string
	// path and kubeconfig are environment variables of the commands. The first directory of path
	// has the version of Helm.
	path, kubeconfig string
	// takeOver is the section on a release that kubectl has installed. force is the flag of later
	// upgrades.
	takeOver, force string
}

func TestHelm(t *testing.T) {
	t.Parallel()
	environment := apiserver.NewEnvironment()
	environment.ControlPlane.GetAPIServer().Configure().
		Append("disable-admission-plugins", "MutatingAdmissionWebhook", "ValidatingAdmissionWebhook")
	config := must1(environment.Start())(t)
	t.Cleanup(func() { must(t, environment.Stop()) })
	admin := must1(client.New(config, client.Options{Scheme: scheme.New()}))(t)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, os.WriteFile(kubeconfig, environment.KubeConfig, 0o600))
	for _, namespace := range []string{"team-a", "foreign"} {
		must(t, admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	}
	tools := must1(filepath.Abs(os.Getenv("KUBEBUILDER_ASSETS")))(t)
	for _, version := range []struct{ program, takeOver, force string }{
		{"helm", "With Helm 3", ""}, {"helm4", "With Helm 4", " --force-conflicts"},
	} {
		t.Run(version.program, func(t *testing.T) {
			dir := t.TempDir()
			must(t, os.Symlink(filepath.Join(tools, version.program), filepath.Join(dir, "helm")))
			r := &chartRelease{
				admin: admin, chart: filepath.Join(dir, "chart"), name: wellknown.OperatorName, takeOver: version.takeOver, force: version.force,
				path: strings.Join([]string{dir, tools, os.Getenv("PATH")}, ":"), kubeconfig: kubeconfig,
			}
			must(t, os.CopyFS(r.chart, os.DirFS("../../charts/nginx-operator")))
			r.test(t, config)
		})
	}
}

func (r *chartRelease) test(t *testing.T, config *rest.Config) {
	r.documented(t, "Install")
	web := newInstance("default", "web")
	// Helm does not wait until the API server serves a CRD of a template.
	waitFor(t, func() error { return r.admin.Create(t.Context(), web) })
	ca, _, err := cert.GenerateSelfSignedCertKey("operator", nil, nil)
	must(t, err)
	r.eachBundle(t, func(bundle *[]byte) { *bundle = ca })

	file := filepath.Join(r.chart, "Chart.yaml")
	text := strings.ReplaceAll(string(must1(os.ReadFile(file))(t)), "ersion: 0.", "ersion: 1.")
	must(t, os.WriteFile(file, []byte(text), 0o600))
	r.documented(t, "Upgrade")
	r.eachBundle(t, func(bundle *[]byte) {
		if !bytes.Equal(*bundle, ca) {
			t.Errorf("the upgrade replaced the CA by %q", *bundle)
		}
	})
	r.documented(t, "Another port")
	r.requirePods(t, false, "--webhook-bind-address=:10250")
	r.documented(t, "The network of the nodes")
	r.requirePods(t, true, "")
	if label := r.crd(t).Labels["helm.sh/chart"]; !strings.HasPrefix(label, wellknown.OperatorName+"-1.") {
		t.Errorf("the CRD is that of chart %q", label)
	}

	r.documented(t, "Uninstall")
	for name, object := range map[string]client.Object{
		wellknown.MutatingName:              &admissionv1.MutatingWebhookConfiguration{},
		wellknown.ValidatingName:            &admissionv1.ValidatingWebhookConfiguration{},
		"nginx-operator-manager-role":       &rbacv1.ClusterRole{},
		"nginx-operator-controller-manager": &appsv1.Deployment{},
	} {
		if err := r.admin.Get(t.Context(), client.ObjectKey{Namespace: operatorNamespace, Name: name}, object); !apierrors.IsNotFound(err) {
			t.Errorf("%T %s is left: %v", object, name, err)
		}
	}
	r.documented(t, "Install")
	r.documented(t, "From Helm to kubectl")
	r.name = "other"
	if out, err := r.try(t, "Install"); err == nil || !strings.Contains(out, "invalid ownership metadata") {
		t.Errorf("another release is installed: %v\n%s", err, out)
	}
	r.documented(t, r.takeOver)
	r.documented(t, "Watch selected namespaces")
	holdsOnly(t, r.admin, config, "team-a", "foreign")
	r.documented(t, "Uninstall")
	must(t, r.admin.Get(t.Context(), client.ObjectKeyFromObject(web), web))
	must(t, r.admin.Delete(t.Context(), r.crd(t)))
	waitFor(t, func() error {
		err := r.admin.Get(t.Context(), client.ObjectKey{Name: wellknown.CRDName}, &apiextensionsv1.CustomResourceDefinition{})
		if err == nil {
			err = fmt.Errorf("%s is there", wellknown.CRDName)
		}
		return client.IgnoreNotFound(err)
	})
}

// documented runs the commands of a section of the page.
func (r *chartRelease) documented(t *testing.T, heading string) {
	t.Helper()
	if out, err := r.try(t, heading); err != nil {
		t.Fatalf("%s: %v\n%s", heading, err, out)
	}
}

// try does the same, and returns the output and the error. It does not wait for Pods, which do not
// exist here.
func (r *chartRelease) try(t *testing.T, heading string) (string, error) {
	t.Helper()
	script := must1(docs.Section(string(must1(os.ReadFile("../../docs/guide/helm.md"))(t)), heading))(t)
	version := strings.TrimSpace(string(must1(os.ReadFile("../../VERSION"))(t)))
	edits := []string{
		"oci://ghcr.io/example/charts/nginx-operator --version " + version, r.chart, " --wait", "",
		"kubectl -n nginx-operator-system rollout status", "true",
	}
	for _, command := range []string{"install", "upgrade", "uninstall"} {
		edits = append(edits, "helm "+command+" nginx-operator ", "helm "+command+" "+r.name+" ")
	}
	if r.name == "other" {
		edits = append(edits, "--reset-then-reuse-values", "--reset-then-reuse-values"+r.force)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", strings.NewReplacer(edits...).Replace(script))
	cmd.Dir = "../.."
	home := filepath.Dir(r.chart)
	cmd.Env = append(os.Environ(), "PATH="+r.path, "KUBECONFIG="+r.kubeconfig,
		"HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// requirePods compares the operator's Pods with the values hostNetwork and ports.webhooks: the
// flag, or "" for the default port.
func (r *chartRelease) requirePods(t *testing.T, hostNetwork bool, flag string) {
	t.Helper()
	deployment := &appsv1.Deployment{}
	must(t, r.admin.Get(t.Context(), client.ObjectKey{Namespace: operatorNamespace, Name: "nginx-operator-controller-manager"}, deployment))
	pod := deployment.Spec.Template.Spec
	found := ""
	for _, arg := range pod.Containers[0].Args {
		if strings.HasPrefix(arg, "--webhook-bind-address=") {
			found = arg
		}
	}
	if pod.HostNetwork != hostNetwork || found != flag {
		t.Errorf("hostNetwork is %t, with the flag %q, want %t and %q", pod.HostNetwork, found, hostNetwork, flag)
	}
}

func (r *chartRelease) crd(t *testing.T) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	must(t, r.admin.Get(t.Context(), client.ObjectKey{Name: wellknown.CRDName}, crd))
	return crd
}

// eachBundle reads or changes the CA in the CRD and in each webhook, and writes the objects as the
// operator does.
func (r *chartRelease) eachBundle(t *testing.T, visit func(bundle *[]byte)) {
	t.Helper()
	crd, mutating, validating := r.crd(t), &admissionv1.MutatingWebhookConfiguration{}, &admissionv1.ValidatingWebhookConfiguration{}
	must(t, r.admin.Get(t.Context(), client.ObjectKey{Name: wellknown.MutatingName}, mutating))
	must(t, r.admin.Get(t.Context(), client.ObjectKey{Name: wellknown.ValidatingName}, validating))
	visit(&crd.Spec.Conversion.Webhook.ClientConfig.CABundle)
	for i := range mutating.Webhooks {
		visit(&mutating.Webhooks[i].ClientConfig.CABundle)
	}
	for i := range validating.Webhooks {
		visit(&validating.Webhooks[i].ClientConfig.CABundle)
	}
	for _, object := range []client.Object{crd, mutating, validating} {
		must(t, r.admin.Update(t.Context(), object, client.FieldOwner("nginx-operator-guard")))
	}
}

// holdsOnly waits until the permissions of the operator in two namespaces are those of its
// ClusterRoles. A ServiceAccount without any binding shows the permissions that every client has.
func holdsOnly(t *testing.T, admin client.Client, config *rest.Config, watched, foreign string) {
	t.Helper()
	clusterRole, role := &rbacv1.ClusterRole{}, &rbacv1.ClusterRole{}
	must(t, admin.Get(t.Context(), client.ObjectKey{Name: "nginx-operator-manager-cluster-role"}, clusterRole))
	must(t, admin.Get(t.Context(), client.ObjectKey{Name: "nginx-operator-manager-role"}, role))
	clusterWide, namespaced := sets.New(grantsOf(clusterRole.Rules)...), sets.New(grantsOf(role.Rules)...)
	if len(clusterWide) < 10 || len(namespaced) < 50 {
		t.Errorf("the ClusterRoles have %d and %d permissions, that shows nothing", len(clusterWide), len(namespaced))
	}
	if both := clusterWide.Intersection(namespaced); len(both) > 0 {
		t.Errorf("both roles have %v", sets.List(both))
	}
	everybody := permissionsIn(t, config, "system:serviceaccount:"+foreign+":default", foreign)
	waitFor(t, func() error { // the API server sees changes of roles and bindings with a delay
		inForeign := permissionsIn(t, config, operatorUser, foreign).Difference(everybody)
		inWatched := permissionsIn(t, config, operatorUser, watched).Difference(everybody)
		if !inForeign.Equal(clusterWide) || !inWatched.Equal(clusterWide.Union(namespaced)) {
			return fmt.Errorf("the operator has more in %s than it should: %v; less: %v; more in %s: %v; less: %v",
				foreign, sets.List(inForeign.Difference(clusterWide)), sets.List(clusterWide.Difference(inForeign)),
				watched, sets.List(inWatched.Difference(clusterWide.Union(namespaced))),
				sets.List(clusterWide.Union(namespaced).Difference(inWatched)))
		}
		return nil
	})
}

// permissionsIn returns the permissions of a user in a namespace, in the form of grantsOf.
func permissionsIn(t *testing.T, config *rest.Config, user, namespace string) sets.Set[string] {
	t.Helper()
	config = rest.CopyConfig(config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	api := must1(kubernetes.NewForConfig(config))(t)
	review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}
	review = must1(api.AuthorizationV1().SelfSubjectRulesReviews().Create(t.Context(), review, metav1.CreateOptions{}))(t)
	var rules []rbacv1.PolicyRule
	for _, rule := range review.Status.ResourceRules {
		rules = append(rules, rbacv1.PolicyRule{
			Verbs: rule.Verbs, APIGroups: rule.APIGroups, Resources: rule.Resources, ResourceNames: rule.ResourceNames,
		})
	}
	return sets.New(grantsOf(rules)...)
}
