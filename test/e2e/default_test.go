package e2e

// config/default without OLM: upgrade and uninstall with kubectl.
//
//   - `kubectl apply --server-side -k config/default` of a later release upgrades the operator. The
//     invariants are the same as for an upgrade through OLM: Pods run the release's image, no request
//     fails, and no read or write at either version fails or is wrong.
//   - `kubectl delete -k config/default` leaves nothing, including cluster-scoped objects.

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/pkg/certificates"
)

// defaultNamespace is the namespace in config/default.
const defaultNamespace = "nginx-operator-system"

// deploy applies config/default of a release, and waits for the rollout of the operator.
func deploy(t *testing.T, delivery string) {
	t.Helper()
	kubectl(t, "apply", "--server-side", "-k", filepath.Join(delivery, "config", "default"))
	waitForOperator(t)
}

// waitForOperator waits for the rollout of the operator in the namespace of config/default.
func waitForOperator(t *testing.T) {
	t.Helper()
	kubectl(t, "rollout", "status", "-n", defaultNamespace, "--timeout=2m", "deployment/"+operatorName)
}

// testDefaultLeavingOut upgrades from the first release directly to this one. Only the catalog's
// graph prevents that, and config/default has no such graph. Reads and writes may fail until the
// new operator converts. No answer is wrong, no request to an instance is lost, and in the end all
// objects are stored at the newer version.
func testDefaultLeavingOut(t *testing.T) {
	startInDefault(t)
	deploy(t, suite.first.delivery)
	fleet := newFleet(t, 10)
	load := startLoad(t, fleet.namespace, suite.reach.service(fleet.namespace, "web", 8080))
	reads := []*reader{startReader(t, fleet.namespace, older, fleet.ports), startReader(t, fleet.namespace, newer, fleet.ports)}
	deploy(t, suite.delivery)
	storageMigrated(t, defaultNamespace, fleet.namespace, "", false)
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
	t.Run("leaving releases out", testDefaultLeavingOut)
}

func testDefaultUpgrade(t *testing.T) {
	startInDefault(t)
	deploy(t, suite.published.delivery)
	fleet := newFleet(t, fewObjects)
	fleet.useNewFields(t)
	from := suite.published
	for _, to := range []release{suite.current, suite.next} {
		fleet.step(t, "from "+from.version+" to "+to.version+", without OLM", from, func(func()) {
			deploy(t, to.delivery)
			waitForKey(t)
		})
		storageMigratedAlready(t, fleet.namespace)
		from = to
	}
	refusesByAdmission(t, fleet.namespace)
	if suite.local { // the test reaches Pods
		prober := startNeighbour(t, fleet.web)
		strangerWork(t, prober, newStrangers(t, 8))
		prober.finish(t, "during work for strangers", 2)
	}
	must(t, deleteNamespace(t.Context(), fleet.namespace))
	waitForNoNamespace(t, fleet.namespace)
	kubectl(t, "delete", "--wait", "-k", filepath.Join(from.delivery, "config", "default"))
	waitForUninstall(t)
}

// waitForKey waits until the operator has replaced an RSA certificate that a release before 0.7.1
// created.
func waitForKey(t *testing.T) {
	t.Helper()
	waitFor(t, defaultNamespace, "a certificate with a key on P-256", patience, func(ctx context.Context) error {
		secret := &corev1.Secret{}
		name := client.ObjectKey{Namespace: defaultNamespace, Name: "nginx-operator-webhook-server-cert"}
		if err := suite.admin.Get(ctx, name, secret); err != nil {
			return err
		}
		certificate, err := certificates.Load(secret.Data)
		if err != nil {
			return err
		}
		return certificates.Outdated(certificate.Leaf)
	})
}

// waitForNoNamespace waits until a deleted namespace and its instances are gone.
func waitForNoNamespace(t *testing.T, name string) {
	t.Helper()
	waitFor(t, name, "the instances to be gone", patience, func(ctx context.Context) error {
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
		for _, object := range left {
			err = errors.Join(err, fmt.Errorf("%s %s is left", object.GetObjectKind().GroupVersionKind().Kind, object.GetName()))
		}
		return err
	})
}
