package integration

// The operator with --watch-namespaces and only the permissions of the overlay in
// docs/guide/operations/watch-namespaces.md, on an API server of its own:
//
//   - An instance of a watched namespace becomes Ready.
//   - An object of another namespace is admitted with a warning, converted, and otherwise left alone.
//   - No request is denied in it, and none lists or writes objects of another namespace.
//   - The operator has exactly the permissions of its ClusterRoles in a watched namespace, and those
//     of manager-cluster-role in another one.
//   - A namespace of the list without the RoleBinding does not affect the others. When it has one, the
//     same process manages the namespace's objects.

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/docs"
	"github.com/example/nginx-operator/internal/scheme"
	"github.com/example/nginx-operator/test/harness"
	"github.com/example/nginx-operator/test/harness/apiserver"
)

// watchedNamespace is the namespace in the guide's overlay. laterNamespace is in the list too, but
// gets its RoleBinding later.
const watchedNamespace, laterNamespace = "team-a", "team-b"

// startWatching starts an API server, installs the guide's overlay, and starts the operator with
// its permissions. It makes them those of the suite until the test ends.
func startWatching(t *testing.T) *harness.Manager {
	t.Helper()
	useServerOfItsOwn(t, watchedNamespace, laterNamespace, "foreign")
	suite.service = must1(harness.NewService())(t)
	t.Cleanup(suite.service.Close)
	// The API server calls the operator at a URL here, which the policies refuse. TestOwnWebhooks
	// tests them.
	must(t, suite.admin.DeleteAllOf(t.Context(), &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}))
	must(t, installOptionalKinds())
	return startWatcher(t, laterNamespace, watchedNamespace)
}

// useServerOfItsOwn gives the test an API server with these namespaces and the guide's overlay, and
// without an operator. The other tests get theirs back when it ends.
func useServerOfItsOwn(t *testing.T, namespaces ...string) {
	t.Helper()
	before := suite
	t.Cleanup(func() { suite = before })
	suite.dir = t.TempDir()
	server := must1(apiserver.Start(suite.dir, operatorUser))(t)
	t.Cleanup(func() { must(t, server.Stop()) })
	suite.config, suite.kubeconfig, suite.auditLog = server.Admin, server.Kubeconfig, server.AuditLog
	suite.admin = must1(client.New(server.Admin, client.Options{Scheme: scheme.New()}))(t)
	for _, namespace := range namespaces {
		create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	}
	must(t, apiserver.Apply(t.Context(), suite.admin, guideOverlay(t)))
}

// startWatcher starts the operator for these namespaces. It ends with the test.
func startWatcher(t *testing.T, namespaces ...string) *harness.Manager {
	t.Helper()
	operator := must1(startOperator("NGINX_OPERATOR_WATCH_NAMESPACES=" + strings.Join(namespaces, ",")))(t)
	t.Cleanup(func() {
		operator.Kill()
		if t.Failed() {
			t.Log("the operator:", operator.Summary())
		}
	})
	return operator
}

// guideOverlay writes the overlay of docs/guide/operations/watch-namespaces.md and returns its
// directory. It references the directories of this repository.
func guideOverlay(t *testing.T) string {
	t.Helper()
	page := must1(fs.ReadFile(os.DirFS("../../docs/guide/operations"), "watch-namespaces.md"))(t)
	repository := must1(filepath.Abs("../.."))(t)
	directory := must1(filepath.EvalSymlinks(t.TempDir()))(t)
	must(t, docs.WriteOverlay(string(page), "Create an overlay", directory, repository))
	return directory
}

func TestWatchNamespaces(t *testing.T) {
	operator := startWatching(t)
	warnings := &recordedWarnings{}
	warned := warningClient(t, warnings)

	create(t, newObject("foreign", "older"))
	create(t, newInstance("foreign", "web"))
	// Admission fails open, so a busy API server may admit an object without it.
	waitFor(t, func() error {
		err := warned.Create(t.Context(), newInstance("foreign", "another"), client.DryRunAll)
		if texts := strings.Join(warnings.list(), "\n"); err == nil && !strings.Contains(texts, `does not watch namespace "foreign"`) {
			err = fmt.Errorf("warnings %q", texts)
		}
		return err
	})
	waitFor(t, func() error {
		invalid := newInstance("foreign", "invalid")
		invalid.Spec.Image = "not an image"
		if err := suite.admin.Create(t.Context(), invalid, client.DryRunAll); !apierrors.IsInvalid(err) {
			return errors.Join(errors.New("an invalid image outside the watched namespaces is not refused"), err)
		}
		return nil
	})

	create(t, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: watchedNamespace, Name: "page"}, Data: map[string]string{"index.html": "first"},
	})
	web := newInstance(watchedNamespace, "web")
	web.Spec.Monitoring = &v1alpha2.Monitoring{PodMonitor: &v1alpha2.PodMonitor{}}
	web.Spec.Content = &v1alpha2.Content{ConfigMapRef: v1alpha2.ConfigMapReference{Name: "page"}}
	serve(t, web)
	before := contentOf(t)
	update(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: watchedNamespace, Name: "page"}}, func(page *corev1.ConfigMap) {
		page.Data["index.html"] = "second"
	})
	waitFor(t, func() error {
		if contentOf(t) == before {
			return errors.New("the change of the referenced ConfigMap is not applied")
		}
		return nil
	})

	// Conversion serves the objects of all namespaces.
	converted := newObject("foreign", "web")
	must(t, suite.admin.Get(t.Context(), client.ObjectKeyFromObject(converted), converted))
	all := &v1alpha1.NginxOperatorList{}
	must(t, suite.admin.List(t.Context(), all))
	if len(all.Items) != 3 {
		t.Errorf("%d objects at v1alpha1, want 3", len(all.Items))
	}
	leftAlone(t, "foreign", "web", "older")
	onlyWatched(t, watchedNamespace, laterNamespace)
	holdsOnly(t, suite.admin, suite.config, watchedNamespace, "foreign")

	create(t, newInstance(laterNamespace, "web"))
	create(t, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: laterNamespace, Name: "nginx-operator"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "nginx-operator-manager-role"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: operatorNamespace, Name: "nginx-operator-controller-manager"}},
	})
	waitForChildren(t, laterNamespace, "web")
	select {
	case <-operator.Done():
		t.Error("the operator has ended:", operator.Summary())
	default:
	}
	leftAlone(t, "foreign", "web", "older")
	onlyWatched(t, watchedNamespace, laterNamespace)
}

// contentOf returns the volumes of the instance, which name the ConfigMap with its content.
func contentOf(t *testing.T) string {
	t.Helper()
	deployment := &appsv1.Deployment{}
	must(t, suite.admin.Get(t.Context(), client.ObjectKey{Namespace: watchedNamespace, Name: "web"}, deployment))
	return fmt.Sprint(deployment.Spec.Template.Spec.Volumes)
}

// leftAlone requires that objects have no status, and that their namespace has no child.
func leftAlone(t *testing.T, namespace string, names ...string) {
	t.Helper()
	for _, name := range names {
		object := newInstance(namespace, name)
		must(t, suite.admin.Get(t.Context(), client.ObjectKeyFromObject(object), object))
		if object.Status.ObservedGeneration != 0 || len(object.Status.Conditions) > 0 || len(object.Finalizers) > 0 {
			t.Errorf("%s has the status %+v", name, object.Status)
		}
		found := must1(childrenOf(t.Context(), namespace, name))(t)
		if found.deployment != nil || found.service != nil || found.policy != nil || len(found.configMaps) > 0 {
			t.Errorf("%s has children: %+v", name, found)
		}
	}
}

// onlyWatched requires that the API server denied the operator no request, except in
// laterNamespace, and that each request for namespaced objects was for a watched namespace, the
// operator's own, or for an Event about the CRD.
func onlyWatched(t *testing.T, watched ...string) {
	t.Helper()
	clusterScoped := []string{
		"customresourcedefinitions", "mutatingwebhookconfigurations", "validatingwebhookconfigurations", "tokenreviews", "subjectaccessreviews",
	}
	requests := must1(apiserver.ReadAudit(suite.auditLog))(t)
	inWatched := 0
	for _, request := range requests {
		if request.Forbidden() && request.ObjectRef.Namespace != laterNamespace {
			t.Errorf("refused: %s in namespace %q", request.Permission(), request.ObjectRef.Namespace)
		}
		switch namespace := request.ObjectRef.Namespace; {
		case slices.Contains(watched, namespace):
			inWatched++
		case namespace == operatorNamespace:
		case namespace == "" && slices.Contains(clusterScoped, request.ObjectRef.Resource):
		case request.ObjectRef.Resource == "events" && namespace == metav1.NamespaceDefault:
		default:
			t.Errorf("%s in namespace %q: %s", request.Permission(), namespace, request.RequestURI)
		}
	}
	if inWatched < 20 {
		t.Errorf("the audit log has %d requests in the watched namespace, that shows nothing", inWatched)
	}
}
