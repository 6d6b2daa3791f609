package e2e

// config/default without OLM: install, upgrade, and uninstall with kubectl.
//
//   - `kubectl apply --server-side -k config/default` is enough on an empty cluster: the operator
//     creates the certificate of its webhooks itself.
//   - The same command with the next release upgrades the operator. The invariants are the same as
//     for an upgrade through OLM: Pods run the release's image, no request fails, and no read or
//     write at either version fails or is wrong.
//   - `kubectl delete -k config/default` leaves nothing, including cluster-scoped objects.

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// defaultNamespace is the namespace in config/default.
const defaultNamespace = "nginx-operator-system"

// deploy applies config/default of a release, and waits for the rollout of the operator.
func deploy(t *testing.T, delivery string) {
	t.Helper()
	kubectl(t, "apply", "--server-side", "-k", filepath.Join(delivery, "config", "default"))
	// clean deletes only namespaces with this label.
	kubectl(t, "label", "--overwrite", "namespace", defaultNamespace, testLabel+"="+madeByTests)
	kubectl(t, "rollout", "status", "-n", defaultNamespace, "--timeout=2m", "deployment/"+operatorName)
}

// testDefaultLeavingOut upgrades from the first release directly to this one. Only the catalog's
// graph prevents that, and config/default has no such graph. Reads and writes may fail until the
// new operator converts. No answer is wrong, no request to an instance is lost, and in the end all
// objects are stored at the newer version.
func testDefaultLeavingOut(t *testing.T) {
	startClean(t)
	suite.operatorNamespace = defaultNamespace
	defer func() { suite.operatorNamespace = "" }()
	deploy(t, suite.first.delivery)
	fleet := newFleet(t, 10)
	load := startLoad(t, fleet.namespace, suite.reach.service(fleet.namespace, "web", 8080))
	reads := []*reader{startReader(t, fleet.namespace, older, fleet.ports), startReader(t, fleet.namespace, newer, fleet.ports)}
	deploy(t, suite.delivery)
	storageMigrated(t, defaultNamespace, fleet.namespace, "")
	must(t, errors.Join(fleet.asCreated(t.Context(), older), fleet.asCreated(t.Context(), newer)))
	during := "from " + suite.first.version + " straight to " + suite.version
	for _, reader := range reads {
		reader.finish(t, during)
	}
	waitForReady(t, fleet.web)
	fleet.settles(t, during)
	load.finish(t, fleet.namespace, "load "+during)
}

func TestDefault(t *testing.T) {
	t.Run("upgrade", testDefaultUpgrade)
	if suite.full {
		t.Run("leaving releases out", testDefaultLeavingOut)
	}
}

func testDefaultUpgrade(t *testing.T) {
	startClean(t)
	suite.operatorNamespace = defaultNamespace
	defer func() { suite.operatorNamespace = "" }()
	began := time.Now()
	deploy(t, suite.published.delivery)
	t.Logf("FIGURE release %s without OLM: %s", suite.published.version, seconds(time.Since(began)))

	fleet := newFleet(t, fewObjects)
	began = time.Now()
	fleet.step(t, "from "+suite.published.version+" to "+suite.version+", without OLM", suite.published, func(func()) {
		deploy(t, suite.delivery)
		t.Logf("FIGURE release %s without OLM: %s", suite.version, seconds(time.Since(began)))
	})
	storageMigratedAlready(t, fleet.namespace)
	installed := suite.delivery
	if suite.full {
		fleet.useNewFields(t)
		installed = suite.next.delivery
		fleet.step(t, "from "+suite.version+" to "+suite.next.version+", without OLM", suite.next, func(func()) { deploy(t, installed) })
		storageMigratedAlready(t, fleet.namespace)
	}

	// Admission also works without OLM.
	requireAdmission(t, fleet.namespace)

	must(t, deleteNamespace(t.Context(), fleet.namespace))
	waitForNoNamespace(t, fleet.namespace)
	kubectl(t, "delete", "--wait", "-k", filepath.Join(installed, "config", "default"))
	waitForUninstall(t)
}

// requireAdmission requires that the operator's admission rejects an invalid object.
func requireAdmission(t *testing.T, namespace string) {
	t.Helper()
	bad := newObject(namespace, "bad", 1)
	bad.Spec.Image = "not an image"
	if err := suite.admin.Create(t.Context(), bad); !apierrors.IsInvalid(err) {
		t.Errorf("a bad image is answered with: %v", err)
	}
}

// waitForNoNamespace waits until a deleted namespace and its instances are gone.
func waitForNoNamespace(t *testing.T, name string) {
	t.Helper()
	waitFor(t, name, "the instances to be gone", 2*time.Minute, func(ctx context.Context) error {
		err := suite.admin.Get(ctx, client.ObjectKey{Name: name}, &corev1.Namespace{})
		if err == nil {
			err = errors.New("the namespace is still there")
		}
		return client.IgnoreNotFound(err)
	})
}

// waitForUninstall waits until no cluster-scoped object of an installation without OLM is left.
func waitForUninstall(t *testing.T) {
	t.Helper()
	waitFor(t, "", "nothing of the operator to be left", patience, func(ctx context.Context) error {
		left, err := clusterScoped(ctx)
		var names []string
		for _, object := range left {
			names = append(names, object.GetObjectKind().GroupVersionKind().Kind+" "+object.GetName())
		}
		for _, list := range []client.ObjectList{
			&admissionv1.MutatingWebhookConfigurationList{}, &admissionv1.ValidatingWebhookConfigurationList{},
		} {
			found, listErr := namesIn(ctx, "", list)
			err = errors.Join(err, listErr)
			for _, name := range found {
				if strings.HasPrefix(name, packageName) {
					names = append(names, name)
				}
			}
		}
		if len(names) > 0 {
			err = errors.Join(err, fmt.Errorf("left: %s", strings.Join(names, ", ")))
		}
		return err
	})
}
