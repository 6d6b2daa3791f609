package e2e

// Helpers that install the operator through OLM, and inspect the state of OLM and of the operator's
// Pods.

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	packageName = "nginx-operator"
	// operatorName is the name of the operator's Deployment and ServiceAccount.
	operatorName     = "nginx-operator-controller-manager"
	operatorSelector = "app.kubernetes.io/name=nginx-operator,app.kubernetes.io/component=controller-manager"
	metricsService   = "nginx-operator-controller-manager-metrics-service"
	metricsRole      = "nginx-operator-metrics-reader"
	leaseName        = "nginx-operator.operator.example.com"
	crdName          = "nginxoperators.operator.example.com"
	// catalogName is the name of the CatalogSource.
	catalogName = "nginx-operator-e2e"
)

func csvName() string { return csvNameOf(suite.version) }

func csvNameOf(version string) string { return packageName + ".v" + version }

// applyManifest applies a manifest with kubectl, after it has inserted the namespace and the image
// of this release's catalog.
func applyManifest(t *testing.T, namespace, manifest string) {
	t.Helper()
	applyText(t, strings.NewReplacer("NAMESPACE", namespace, "CATALOG_IMAGE", suite.catalogImage).Replace(manifest))
}

// applyText applies manifests with kubectl.
func applyText(t *testing.T, manifests string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "manifest.yaml")
	must(t, os.WriteFile(file, []byte(manifests), 0o600))
	kubectl(t, "apply", "-f", file)
}

// olmObject returns an empty object of an OLM kind.
func olmObject(kind, namespace, name string) *unstructured.Unstructured {
	object := objectOf("operators.coreos.com/v1alpha1", kind, name)
	object.SetNamespace(namespace)
	return object
}

// text returns the string at a path of an object, or "" if the path does not exist.
func text(object *unstructured.Unstructured, path ...string) string {
	value, _, _ := unstructured.NestedString(object.Object, path...)
	return value
}

// waitForInstall waits until OLM reports that this release is installed and all replicas of the
// operator are ready.
func waitForInstall(t *testing.T, namespace string) time.Duration {
	t.Helper()
	return waitForRelease(t, namespace, suite.version)
}

// waitForRelease is like waitForInstall, for any release.
func waitForRelease(t *testing.T, namespace, version string) time.Duration {
	t.Helper()
	return waitFor(t, namespace, "release "+version+" of the operator to be installed", installPatience, func(ctx context.Context) error {
		return installed(ctx, namespace, version)
	})
}

// waitForOLM waits until OLM has processed a change of the webhook certificate. OLM reconciles a
// ClusterServiceVersion if a dependent changes, and again after 15 minutes. OLM can miss a change,
// so waitForOLM annotates the Secret every 10 seconds. An annotation on the ClusterServiceVersion
// would reach the Deployment and start a rollout.
func waitForOLM(t *testing.T, namespace, what string, check func(context.Context) error) time.Duration {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: certificateSecret}}
	touched := time.Now()
	return waitFor(t, namespace, what, installPatience, func(ctx context.Context) error {
		if time.Since(touched) > 10*time.Second {
			touched = time.Now()
			annotation := fmt.Sprintf(`{"metadata":{"annotations":{"example.com/touched":%q}}}`, touched.Format(time.RFC3339))
			if err := suite.admin.Patch(ctx, secret, client.RawPatch(types.MergePatchType, []byte(annotation))); err != nil {
				return err
			}
		}
		return check(ctx)
	})
}

// installed returns an error unless OLM reports that a release is installed and all replicas of the
// operator are ready.
func installed(ctx context.Context, namespace, version string) error {
	if err := succeeded(ctx, namespace, version); err != nil {
		return err
	}
	return operatorRolledOut(ctx, namespace)
}

// succeeded returns an error unless OLM reports that a release is installed.
func succeeded(ctx context.Context, namespace, version string) error {
	csv := olmObject("ClusterServiceVersion", namespace, csvNameOf(version))
	if err := suite.admin.Get(ctx, client.ObjectKeyFromObject(csv), csv); err != nil {
		return err
	}
	if phase := text(csv, "status", "phase"); phase != "Succeeded" {
		return fmt.Errorf("%s is %q, %s: %s", csv.GetName(), phase, text(csv, "status", "reason"), text(csv, "status", "message"))
	}
	return nil
}

// operatorRolledOut returns an error unless the operator has exactly two Pods and both are ready.
// Pods of an old revision count, so a rollout in progress is an error.
func operatorRolledOut(ctx context.Context, namespace string) error {
	const replicas = 2
	pods, err := operatorPods(ctx, namespace)
	if err != nil {
		return err
	}
	readyPods := 0
	for i := range pods {
		for _, condition := range pods[i].Status.Conditions {
			if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
				readyPods++
			}
		}
	}
	if len(pods) != replicas || readyPods != replicas {
		return fmt.Errorf("the operator has %d Pods, %d of them ready, instead of %d", len(pods), readyPods, replicas)
	}
	return nil
}

// operatorPods returns all Pods of the operator, including terminating Pods.
func operatorPods(ctx context.Context, namespace string) ([]corev1.Pod, error) {
	list := &corev1.PodList{}
	selector, err := metav1.ParseToLabelSelector(operatorSelector)
	if err != nil {
		return nil, err
	}
	err = suite.admin.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels(selector.MatchLabels))
	return list.Items, err
}

// uninstall removes the operator as OLM documents it: first the Subscription, then the
// ClusterServiceVersion. It waits until no Pod of the operator is left.
func uninstall(t *testing.T, namespace string) {
	t.Helper()
	must(t, suite.admin.Delete(t.Context(), olmObject("Subscription", namespace, packageName)))
	must(t, suite.admin.Delete(t.Context(), olmObject("ClusterServiceVersion", namespace, csvName())))
	waitFor(t, namespace, "the operator to be gone", patience, func(ctx context.Context) error {
		pods, err := operatorPods(ctx, namespace)
		if err != nil || len(pods) > 0 {
			return errors.Join(fmt.Errorf("%d Pods of the operator are left", len(pods)), err)
		}
		return nil
	})
}

// leader returns the identity of the leading replica, which starts with the Pod's name. It returns
// an error if no replica leads.
func leader(ctx context.Context, namespace string) (string, error) {
	lease, err := readLease(ctx, namespace)
	identity := ptr.Deref(lease.Spec.HolderIdentity, "")
	if err == nil && identity == "" {
		err = fmt.Errorf("nobody holds Lease %s", leaseName)
	}
	return identity, err
}

func readLease(ctx context.Context, namespace string) (*coordinationv1.Lease, error) {
	lease := &coordinationv1.Lease{}
	return lease, suite.admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: leaseName}, lease)
}

// waitForOtherLeader waits until a replica other than before leads. It returns the identity of the
// new leader and how long that took.
func waitForOtherLeader(t *testing.T, namespace, before string) (string, time.Duration) {
	t.Helper()
	var now string
	took := waitFor(t, namespace, "another leader", patience, func(ctx context.Context) (err error) {
		if now, err = leader(ctx, namespace); err == nil && now == before {
			err = fmt.Errorf("%s still leads", before)
		}
		return err
	})
	return now, took
}
