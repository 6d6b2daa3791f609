package e2e

// This file installs the operator through OLM and looks at what OLM and the operator's Pods do.

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
	// operatorName is the name of the operator's Deployment and of its ServiceAccount.
	operatorName     = "nginx-operator-controller-manager"
	operatorSelector = "app.kubernetes.io/name=nginx-operator,app.kubernetes.io/component=controller-manager"
	metricsService   = "nginx-operator-controller-manager-metrics-service"
	metricsRole      = "nginx-operator-metrics-reader"
	leaseName        = "nginx-operator.operator.example.com"
	crdName          = "nginxoperators.operator.example.com"
	// catalogName is the CatalogSource's.
	catalogName = "nginx-operator-e2e"
)

func csvName() string { return csvNameOf(suite.version) }

func csvNameOf(version string) string { return packageName + ".v" + version }

// applyManifest applies one of the manifests for a namespace with kubectl, with this release's catalog.
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

// olmObject returns an empty object of a kind of OLM.
func olmObject(kind, namespace, name string) *unstructured.Unstructured {
	object := objectOf("operators.coreos.com/v1alpha1", kind, name)
	object.SetNamespace(namespace)
	return object
}

// text returns the string at a path of an object, "" where there is none.
func text(object *unstructured.Unstructured, path ...string) string {
	value, _, _ := unstructured.NestedString(object.Object, path...)
	return value
}

// waitForInstall waits until OLM has installed the operator and says so, and all replicas of it are ready.
func waitForInstall(t *testing.T, namespace string) time.Duration {
	t.Helper()
	return waitForRelease(t, namespace, suite.version)
}

// waitForRelease does the same for any release.
func waitForRelease(t *testing.T, namespace, version string) time.Duration {
	t.Helper()
	return waitFor(t, namespace, "release "+version+" of the operator to be installed", installPatience, func(ctx context.Context) error {
		return installed(ctx, namespace, version)
	})
}

// waitForOLM waits for what OLM does about the certificate of the webhooks. It looks at a ClusterServiceVersion when something happens to
// what belongs to it, and again after a quarter of an hour. Should it miss that, the Secret gets another annotation now and then; one
// of the ClusterServiceVersion would end up in the Deployment, and start a rollout.
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

// installed reports whether OLM says that a release is installed, and all replicas of it are ready.
func installed(ctx context.Context, namespace, version string) error {
	if err := succeeded(ctx, namespace, version); err != nil {
		return err
	}
	return operatorRolledOut(ctx, namespace)
}

// succeeded reports whether OLM says that a release is installed.
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

// operatorRolledOut reports whether all replicas of the operator are ready, of the newest revision, and no other is left.
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

// operatorPods returns all Pods of the operator, those that are ending as well.
func operatorPods(ctx context.Context, namespace string) ([]corev1.Pod, error) {
	list := &corev1.PodList{}
	selector, err := metav1.ParseToLabelSelector(operatorSelector)
	if err != nil {
		return nil, err
	}
	err = suite.admin.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels(selector.MatchLabels))
	return list.Items, err
}

// uninstall removes the operator as OLM's documentation says: the Subscription, then the ClusterServiceVersion. It waits
// until no Pod of it is left.
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

// leader returns the identity of the replica that leads; it begins with the Pod's name. An error says that none does.
func leader(ctx context.Context, namespace string) (string, error) {
	lease := &coordinationv1.Lease{}
	if err := suite.admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: leaseName}, lease); err != nil {
		return "", err
	}
	identity := ptr.Deref(lease.Spec.HolderIdentity, "")
	if identity == "" {
		return "", fmt.Errorf("nobody holds Lease %s", leaseName)
	}
	return identity, nil
}

// waitForOtherLeader waits until another than the one before leads, and returns who and how long it took.
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
