package e2e

// The bundle, tested with the tools of operator-sdk. `make validate` runs `operator-sdk bundle
// validate`.
//
//   - `operator-sdk run bundle` installs a working operator: an instance becomes ready and serves.
//   - `operator-sdk scorecard` passes every basic and OLM test, and every test of test/scorecard,
//     without a suggestion.
//   - `operator-sdk cleanup` removes everything, including the API and with it the instances (its
//     default). Only the objects that OLM itself leaves remain. onlyLeftByOLM lists them.
//   - `operator-sdk run bundle` with the published release, followed by `operator-sdk run
//     bundle-upgrade` to this release: the invariants of an upgrade hold.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
)

func TestBundle(t *testing.T) {
	namespace := startIn(t, baseline)
	operatorSDK(t, namespace, "run", "bundle", suite.bundleImage)
	waitForInstall(t, namespace)
	web := newInstance(t, newNamespace(t, restricted), "web", 1)
	serviceServes(t, web.Namespace, "web", 8080)
	t.Run("scorecard", testScorecard)
	t.Run("cleanup", func(t *testing.T) { testCleanup(t, namespace, web) })
}

// scorecardTests is the number of tests: one basic test and five OLM tests that operator-sdk
// scaffolds, and four in test/scorecard.
const scorecardTests = 10

// testScorecard requires that all tests pass without a suggestion. Those in test/scorecard need the
// operator and the RBAC permissions of an editor.
func testScorecard(t *testing.T) {
	namespace := newNamespace(t, baseline)
	waitFor(t, namespace, "a ServiceAccount", patience, func(ctx context.Context) error {
		return suite.admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "default"}, &corev1.ServiceAccount{})
	})
	kubectl(t, "create", "rolebinding", "scorecard", "-n", namespace,
		"--clusterrole=nginx-operator-nginxoperator-editor-role", "--serviceaccount="+namespace+":default")
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	// The default of --untar-image is an image digest in operator-sdk's own registry.
	out, err := command(ctx, "operator-sdk", "scorecard", filepath.Join(suite.delivery, "bundle"), "--namespace="+namespace,
		"--selector=suite in (basic,olm,nginx)", "--untar-image=docker.io/library/busybox:1.36", "--wait-time=2m", "--output=json")
	if err != nil {
		// operator-sdk also fails if a test fails. The results of the tests follow below.
		keepReport(t, namespace)
		t.Errorf("scorecard: %.4000s", err)
	}
	var list struct {
		Items []struct {
			Spec   struct{ Labels map[string]string }
			Status struct {
				Results []struct {
					Name, State         string
					Errors, Suggestions []string
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		t.Fatalf("failed to decode the result: %v\n%s", err, out)
	}
	results := 0
	for _, item := range list.Items {
		for _, result := range item.Status.Results {
			results++
			t.Logf("scorecard %s %s: %s", item.Spec.Labels["suite"], result.Name, result.State)
			if result.State != "pass" || len(result.Errors) > 0 || len(result.Suggestions) > 0 {
				t.Errorf("%s: %s, errors %q, suggestions %q", result.Name, result.State, result.Errors, result.Suggestions)
			}
		}
	}
	if results != scorecardTests {
		t.Errorf("%d tests ran instead of %d", results, scorecardTests)
	}
}

// collectorDelay is the age of an API after which the garbage collector watches it.
const collectorDelay = 40 * time.Second

// testCleanup removes the operator with operator-sdk, and requires that nothing of the operator and
// of an instance is left.
func testCleanup(t *testing.T, namespace string, instance *v1alpha2.NginxOperator) {
	t.Helper()
	instances := instance.Namespace
	// The garbage collector discovers a new kind within half a minute, and only then starts to
	// watch it. If the CRD is deleted earlier, the children of its objects remain. The cleanup of
	// another object shows that the kind is known, but not that the watch has started.
	other := newInstance(t, instances, "other", 1)
	crd, err := readCRD(t.Context())
	must(t, err)
	time.Sleep(time.Until(crd.CreationTimestamp.Add(collectorDelay)))
	must(t, suite.admin.Delete(t.Context(), other))
	waitFor(t, instances, "the garbage collector to know the API", 2*time.Minute, func(ctx context.Context) error {
		pods, err := podsOf(ctx, other)
		if err == nil && len(pods) > 0 {
			err = fmt.Errorf("%d Pods are left", len(pods))
		}
		return err
	})

	operatorSDK(t, namespace, "cleanup", packageName)
	waitFor(t, instances, "the API and its instances to be gone", patience, func(ctx context.Context) error {
		pods, err := podsOf(ctx, instance)
		if err == nil && len(pods) > 0 {
			err = fmt.Errorf("%d Pods are left", len(pods))
		}
		crd := objectOf("apiextensions.k8s.io/v1", "CustomResourceDefinition", crdName)
		if suite.admin.Get(ctx, client.ObjectKeyFromObject(crd), crd) == nil {
			err = errors.Join(err, errors.New("the CRD of the API is left"))
		}
		if suite.admin.Get(ctx, client.ObjectKeyFromObject(instance), &v1alpha2.NginxOperator{}) == nil {
			err = errors.Join(err, errors.New("the object is left"))
		}
		return err
	})
	waitFor(t, namespace, "nothing of the operator to be left", patience, func(ctx context.Context) error {
		return errors.Join(nothingIn(ctx, namespace), onlyLeftByOLM(ctx))
	})
}

// operatorSDK runs a command of operator-sdk that accepts a namespace and a timeout.
func operatorSDK(t *testing.T, namespace string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), installPatience+30*time.Second)
	defer cancel()
	began := time.Now()
	out, err := command(ctx, "operator-sdk", append(args, "--namespace="+namespace, "--timeout="+installPatience.String())...)
	if err != nil {
		fatal(t, namespace, "%v", err)
	}
	t.Logf("FIGURE operator-sdk %s: %s\n%s", strings.Join(args, " "), seconds(time.Since(began)), out)
}

func TestBundleUpgrade(t *testing.T) {
	namespace := startIn(t, baseline)
	operatorSDK(t, namespace, "run", "bundle", suite.published.bundleImage)
	waitForRelease(t, namespace, suite.published.version)
	fleet := newFleet(t, fewObjects)
	fleet.step(t, "from "+suite.published.version+" to "+suite.version+", run bundle-upgrade", suite.published, func(func()) {
		operatorSDK(t, namespace, "run", "bundle-upgrade", suite.bundleImage)
	})
	storageMigratedAlready(t, fleet.namespace)
}

// nothingIn returns an error as long as the operator's namespace has any object of the
// installation.
func nothingIn(ctx context.Context, namespace string) error {
	var errs []error
	for _, list := range []client.ObjectList{
		&appsv1.DeploymentList{}, &appsv1.ReplicaSetList{}, &corev1.PodList{}, &corev1.ServiceList{}, &corev1.SecretList{},
		&rbacv1.RoleList{}, &rbacv1.RoleBindingList{},
		metadataList("policy/v1", "PodDisruptionBudgetList"),
		metadataList("operators.coreos.com/v1", "OperatorGroupList"),
		metadataList("operators.coreos.com/v2", "OperatorConditionList"),
		metadataList("operators.coreos.com/v1alpha1", "CatalogSourceList"),
		metadataList("operators.coreos.com/v1alpha1", "SubscriptionList"),
		metadataList("operators.coreos.com/v1alpha1", "InstallPlanList"),
		metadataList("operators.coreos.com/v1alpha1", "ClusterServiceVersionList"),
	} {
		names, err := namesIn(ctx, namespace, list)
		if len(names) > 0 {
			errs = append(errs, fmt.Errorf("%T: %s", list, strings.Join(names, ", ")))
		}
		errs = append(errs, err)
	}
	// Every namespace has ConfigMaps and ServiceAccounts of its own.
	for _, list := range []client.ObjectList{&corev1.ConfigMapList{}, &corev1.ServiceAccountList{}} {
		names, err := namesIn(ctx, namespace, list)
		names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, packageName) })
		if len(names) > 0 {
			errs = append(errs, fmt.Errorf("%T: %s", list, strings.Join(names, ", ")))
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// namesIn returns the names of all objects of a kind in a namespace.
func namesIn(ctx context.Context, namespace string, list client.ObjectList, options ...client.ListOption) ([]string, error) {
	if err := suite.admin.List(ctx, list, append(options, client.InNamespace(namespace))...); err != nil {
		return nil, err
	}
	var names []string
	err := meta.EachListItem(list, func(item runtime.Object) error {
		names = append(names, item.(client.Object).GetName())
		return nil
	})
	return names, err
}

// onlyLeftByOLM returns an error as long as any other cluster-scoped object is left than the ones
// that OLM leaves of every operator: the ClusterRoles from files of the bundle, and the Operator
// object, which summarizes the installation.
func onlyLeftByOLM(ctx context.Context) error {
	left, err := clusterScoped(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, object := range left {
		kind, name := object.GetObjectKind().GroupVersionKind().Kind, object.GetName()
		fromBundle := []string{metricsRole, "nginx-operator-nginxoperator-editor-role", "nginx-operator-nginxoperator-viewer-role"}
		if kind != "Operator" && (kind != "ClusterRole" || !slices.Contains(fromBundle, name)) {
			errs = append(errs, fmt.Errorf("%s %s", kind, name))
		}
	}
	return errors.Join(errs...)
}
