package e2e

// Migration of an installation from OLM to kubectl and, in a full run, back, with the commands of
// docs/upgrades.md.
//
//   - No Pod of an instance is replaced or removed, and no request fails.
//   - After each migration, conversion and admission work. The new operator applies changes made
//     while no operator was running, also a change of the number of Pods.
//   - Before OLM installs, no webhook, permission, or ServiceAccount of the kubectl installation is
//     left.

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/docs"
	"github.com/example/nginx-operator/internal/wellknown"
	"github.com/example/nginx-operator/test/harness"
)

// testHandover starts with an installation by a Subscription in suite.operatorNamespace. A full run
// ends with one, too.
func testHandover(t *testing.T) {
	operator := suite.operatorNamespace
	installIn(t, operator) // until the end
	namespace := newNamespace(t, restricted)
	object := newInstance(t, namespace, "web", 2)
	pods := uidsOf(t, object)
	load := startLoad(t, namespace, suite.reach.service(namespace, "web", 8080))

	began := time.Now()
	uninstall(t, operator)
	update(t, object, annotateService("olm"))
	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Replicas = ptr.To[int32](3) })
	createDefaultNamespace(t)
	documented(t, "From OLM to kubectl")
	suite.operatorNamespace = defaultNamespace
	takenOver(t, object, "olm")
	t.Logf("FIGURE from OLM to kubectl: %s", seconds(time.Since(began)))
	if suite.full {
		backToOLM(t, object, operator)
	}

	load.finish(t, namespace, "load while an installation moves")
	waitForOnly(t, object, 3)
	if now := uidsOf(t, object); !slices.Contains(now, pods[0]) || !slices.Contains(now, pods[1]) {
		t.Errorf("the Pods were %v and are %v", pods, now)
	}
}

func backToOLM(t *testing.T, object *v1alpha2.NginxOperator, operator string) {
	t.Helper()
	began := time.Now()
	documented(t, "From kubectl to OLM")
	nothingLeft(t)
	update(t, object, annotateService("kubectl"))
	suite.operatorNamespace = operator
	applyManifest(t, operator, harness.SubscriptionManifest)
	waitForInstall(t, operator)
	takenOver(t, object, "kubectl")
	must(t, deleteNamespace(t.Context(), defaultNamespace))
	t.Logf("FIGURE from kubectl to OLM: %s", seconds(time.Since(began)))
}

// documented runs the commands of a section of docs/upgrades.md in the directory of the release.
func documented(t *testing.T, heading string) {
	t.Helper()
	_, err := documentedIn(t, "upgrades.md", heading, suite.delivery, strings.NewReplacer())
	must(t, err)
}

// documentedIn runs the commands of a section of a page below docs/ in the directory of a release,
// with replacements.
func documentedIn(t *testing.T, page, heading, delivery string, edit *strings.Replacer) (string, error) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(suite.repository, "docs", filepath.FromSlash(page)))
	must(t, err)
	script, err := docs.Section(string(text), heading)
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), installPatience)
	defer cancel()
	return command(ctx, "bash", "-euo", "pipefail", "-c", "cd '"+delivery+"'\n"+edit.Replace(script))
}

// handoverAnnotation is set on the instance's Service. Its value names the installation that was
// removed last.
const handoverAnnotation = "example.com/handover"

// annotateService returns a change of an instance that replaces no Pods.
func annotateService(value string) func(*v1alpha2.NginxOperator) {
	return func(o *v1alpha2.NginxOperator) {
		o.Spec.Service = &v1alpha2.Service{Annotations: map[string]string{handoverAnnotation: value}}
	}
}

// takenOver requires that an operator reconciles an instance, converts it, and rejects an invalid
// one.
func takenOver(t *testing.T, object *v1alpha2.NginxOperator, value string) {
	t.Helper()
	waitFor(t, object.Namespace, "the change made without an operator", patience, func(ctx context.Context) error {
		service := &corev1.Service{}
		if err := suite.admin.Get(ctx, client.ObjectKeyFromObject(object), service); err != nil {
			return err
		}
		if service.Annotations[handoverAnnotation] != value {
			return errors.New("the Service does not have it")
		}
		return nil
	})
	waitForReady(t, object)
	port := kubectl(t, "get", "-n", object.Namespace, "nginxoperators.v1alpha1.operator.example.com", object.Name,
		"-o", "jsonpath={.spec.port}")
	if port != "8080" {
		t.Errorf("v1alpha1 shows port %q", port)
	}
	refusesByAdmission(t, object.Namespace)
}

// nothingLeft requires that the kubectl installation left no webhook, no permission, and no
// ServiceAccount.
func nothingLeft(t *testing.T) {
	t.Helper()
	for name, object := range map[string]client.Object{
		wellknown.MutatingName:                       &admissionv1.MutatingWebhookConfiguration{},
		wellknown.ValidatingName:                     &admissionv1.ValidatingWebhookConfiguration{},
		packageName + "-manager-rolebinding":         &rbacv1.ClusterRoleBinding{},
		packageName + "-manager-role":                &rbacv1.ClusterRole{},
		packageName + "-manager-cluster-rolebinding": &rbacv1.ClusterRoleBinding{},
		packageName + "-manager-cluster-role":        &rbacv1.ClusterRole{},
	} {
		if err := suite.admin.Get(t.Context(), client.ObjectKey{Name: name}, object); !apierrors.IsNotFound(err) {
			t.Errorf("%T %s is left: %v", object, name, err)
		}
	}
	accounts, err := namesIn(t.Context(), defaultNamespace, &corev1.ServiceAccountList{})
	must(t, err)
	for _, name := range accounts {
		if name != "default" {
			t.Errorf("ServiceAccount %s is left", name)
		}
	}
}
