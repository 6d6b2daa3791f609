package e2e

// OLM v1, on a cluster without OLM v0: the part olm-v1, which is this file and
// olmv1upgrades_test.go. The operator is installed as config/olm-v1-before-1.11 describes, because
// the cluster has operator-controller 1.5.1. The test covers installation, certificate replacement,
// upgrades, uninstallation, and migration from OLM v0. It uses the same clients as the upgrades
// through OLM v0.

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
)

const olmV1API = "olm.operatorframework.io/v1"

func TestOLMv1(t *testing.T) {
	t.Run("upgrades", testUpgradesUnderOLMv1)
	t.Run("life", testLifeUnderOLMv1)
	t.Run("install with cert-manager", func(t *testing.T) {
		serveRelease(t)
		testInstallManifest(t, "install-cert-manager.yaml")
	})
}

func testLifeUnderOLMv1(t *testing.T) {
	operator := startIn(t, restricted)
	removeExtensionAtEnd(t)

	current := suite.current
	extend(t, operator, current)
	fleet := newFleet(t, fewObjects)

	fleet.step(t, "while the certificate is replaced, OLM v1", current, func(func()) {
		for range 3 {
			replaceCertificate(t, operator)
		}
	})
	testConversionComesBack(t)
	refusesByAdmission(t, fleet.namespace)
	fleet.step(t, "from "+current.version+" to "+suite.next.version+", OLM v1", current, func(func()) {
		extendByPoll(t, operator, suite.current, suite.next)
		sets := &appsv1.ReplicaSetList{}
		must(t, suite.admin.List(t.Context(), sets, client.InNamespace(operator)))
		if len(sets.Items) != 2 {
			t.Errorf("the operator has %d ReplicaSets, want one for each release", len(sets.Items))
		}
	})
	fleet.outlivesExtension(t, operator)
	takeOver(t, operator)
	extend(t, operator, suite.next)
	must(t, errors.Join(fleet.asCreated(t.Context(), older), fleet.asCreated(t.Context(), newer)))
	fleet.useNewFields(t)
}

// applyExtension applies config/olm-v1-before-1.11 with a catalog image, pinned to a release.
func applyExtension(t *testing.T, operator, catalogImage, version string) {
	t.Helper()
	manifests := kubectl(t, "kustomize", filepath.Join(suite.repository, "config", "olm-v1-before-1.11"))
	replaced := strings.NewReplacer(
		"nginx-operator-system", operator,
		catalogOfRelease+"latest", catalogImage,
		"'>=0.5.0'", "'"+version+"'",
	).Replace(manifests)
	for _, want := range []string{catalogImage, "'" + version + "'"} {
		if !strings.Contains(replaced, want) {
			t.Fatalf("config/olm-v1-before-1.11 does not name what the test replaces by %s:\n%s", want, manifests)
		}
	}
	applyText(t, replaced)
}

// extend applies the extension of a release, and waits until that release is installed.
func extend(t *testing.T, operator string, r release) {
	t.Helper()
	applyExtension(t, operator, r.catalogImage, r.version)
	waitForExtension(t, operator, r.version)
}

// waitForExtension waits until OLM v1 has installed a release, and both replicas run it. OLM v1
// must check CRDs by default.
func waitForExtension(t *testing.T, operator, version string) {
	t.Helper()
	took := waitFor(t, operator, "release "+version, installPatience, func(ctx context.Context) error {
		return errors.Join(extendedTo(ctx, version), replicasRun(ctx, operator, version))
	})
	t.Logf("FIGURE release %s is installed after %s, OLM v1", version, seconds(took))
	extension := objectOf(olmV1API, "ClusterExtension", packageName)
	must(t, suite.admin.Get(t.Context(), client.ObjectKeyFromObject(extension), extension))
	if install, found, _ := unstructured.NestedMap(extension.Object, "spec", "install"); found {
		t.Errorf("the ClusterExtension has spec.install: %v", install)
	}
}

// extendedTo returns an error unless OLM v1 reports that a release is installed.
func extendedTo(ctx context.Context, version string) error {
	is, said, err := readExtension(ctx)
	if err != nil || is != version {
		return errors.Join(err, fmt.Errorf("release %q is installed; %s", is, said))
	}
	return nil
}

// replicasRun returns an error unless both replicas of the operator run a release and are ready.
func replicasRun(ctx context.Context, operator, version string) error {
	pods, err := operatorPods(ctx, operator)
	for i := range pods {
		if image := pods[i].Spec.Containers[0].Image; !strings.HasSuffix(image, ":v"+version) {
			err = errors.Join(err, fmt.Errorf("%s runs %s", pods[i].Name, image))
		}
	}
	return errors.Join(err, operatorRolledOut(ctx, operator))
}

// extendByPoll makes OLM v1 upgrade to a release because the tag of the catalog moves. The interval
// is the shortest that a ClusterCatalog accepts.
func extendByPoll(t *testing.T, operator string, from, to release) {
	t.Helper()
	image := movePolledTag(t, from)
	kubectl(t, "patch", "clustercatalog", packageName, "--type=merge", "-p",
		`{"spec":{"source":{"image":{"ref":"`+image+`","pollIntervalMinutes":1}}}}`)
	// Otherwise catalogd could read the tag because of this change, after it has moved.
	waitFor(t, operator, "catalogd to read the tag", patience, func(ctx context.Context) error {
		catalog := objectOf(olmV1API, "ClusterCatalog", packageName)
		if err := suite.admin.Get(ctx, client.ObjectKeyFromObject(catalog), catalog); err != nil {
			return err
		}
		conditions, _, _ := unstructured.NestedSlice(catalog.Object, "status", "conditions")
		for _, condition := range conditions {
			if observed, _, _ := unstructured.NestedInt64(condition.(map[string]any), "observedGeneration"); observed == catalog.GetGeneration() {
				return nil
			}
		}
		return fmt.Errorf("generation %d is not in the conditions %v", catalog.GetGeneration(), conditions)
	})
	kubectl(t, "patch", "clusterextension", packageName, "--type=merge", "-p", `{"spec":{"source":{"catalog":{"version":"`+to.version+`"}}}}`)
	movePolledTag(t, to)
	waitForExtension(t, operator, to.version)
}

// readExtension returns the release that OLM v1 has installed, or "" if there is none, and the
// conditions of the ClusterExtension.
func readExtension(ctx context.Context) (version, said string, err error) {
	extension := objectOf(olmV1API, "ClusterExtension", packageName)
	err = suite.admin.Get(ctx, client.ObjectKeyFromObject(extension), extension)
	conditions, _, _ := unstructured.NestedSlice(extension.Object, "status", "conditions")
	return text(extension, "status", "install", "bundle", "version"), fmt.Sprint(conditions), err
}

// replaceCertificate deletes the webhook certificate, and waits until cert-manager has created
// another one that the CRD and all webhook configurations trust.
func replaceCertificate(t *testing.T, operator string) {
	t.Helper()
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: operator, Name: certificateSecret}
	must(t, suite.admin.Get(t.Context(), key, secret))
	must(t, suite.admin.Delete(t.Context(), secret))
	waitFor(t, operator, "another certificate that all webhooks trust", patience, func(ctx context.Context) error {
		now := &corev1.Secret{}
		if err := suite.admin.Get(ctx, key, now); err != nil {
			return err
		}
		bundles, err := caBundles(ctx, operator)
		if err != nil {
			return err
		}
		ca := strings.TrimSpace(string(now.Data["ca.crt"]))
		for name, bundle := range bundles {
			if now.UID == secret.UID || !strings.Contains(bundle, ca) {
				err = errors.Join(err, fmt.Errorf("%s does not trust the CA of Secret %s", name, now.UID))
			}
		}
		return err
	})
}

// caBundles returns the CAs (PEM) that the CRD and the operator's webhook configurations trust, by
// the name of the object.
func caBundles(ctx context.Context, operator string) (map[string]string, error) {
	crd, err := readCRD(ctx)
	mutating := &admissionregistrationv1.MutatingWebhookConfigurationList{}
	validating := &admissionregistrationv1.ValidatingWebhookConfigurationList{}
	if err = errors.Join(err, suite.admin.List(ctx, mutating), suite.admin.List(ctx, validating)); err != nil {
		return nil, err
	}
	out := map[string]string{crdName: string(crd.Spec.Conversion.Webhook.ClientConfig.CABundle)}
	add := func(name string, config admissionregistrationv1.WebhookClientConfig) {
		if config.Service != nil && config.Service.Namespace == operator {
			out[name] = string(config.CABundle)
		}
	}
	for _, configuration := range mutating.Items {
		for _, webhook := range configuration.Webhooks {
			add(configuration.Name, webhook.ClientConfig)
		}
	}
	for _, configuration := range validating.Items {
		for _, webhook := range configuration.Webhooks {
			add(configuration.Name, webhook.ClientConfig)
		}
	}
	if len(out) < 3 {
		return nil, fmt.Errorf("only %v call the operator", slices.Sorted(maps.Keys(out)))
	}
	return out, nil
}

// refusesByAdmission waits until admission rejects an invalid nginx configuration. The webhooks
// work only after cert-manager has injected the CA into their configuration.
func refusesByAdmission(t *testing.T, namespace string) {
	t.Helper()
	object := newObject(namespace, "refused", 0)
	object.Spec.Config = &v1alpha2.Config{Inline: "server {"}
	waitFor(t, namespace, "admission to refuse a configuration", patience, func(ctx context.Context) error {
		err := suite.admin.Create(ctx, object.DeepCopy(), client.DryRunAll)
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.config.inline") {
			return fmt.Errorf("the answer is: %w", err)
		}
		return nil
	})
}

// outlivesExtension uninstalls the operator, and requires the instance to keep serving and all
// objects to remain.
func (f *fleet) outlivesExtension(t *testing.T, operator string) {
	t.Helper()
	load := startLoad(t, f.namespace, suite.reach.service(f.namespace, "web", 8080))
	must(t, removeExtension(t.Context()))
	waitFor(t, operator, "the operator to be gone", patience, func(ctx context.Context) error {
		pods, err := operatorPods(ctx, operator)
		if err == nil && len(pods) > 0 {
			err = fmt.Errorf("%d Pods of it are left", len(pods))
		}
		return err
	})
	must(t, f.asCreated(t.Context(), newer))
	f.samePods(t, "uninstall, OLM v1")
	load.finish(t, f.namespace, "load while OLM v1 uninstalls the operator")
}

// takeOver makes OLM v1 adopt a CRD that OLM v0 left, with the commands of docs/guide/olm-v1.md.
// Without them, OLM v1 must reject the CRD.
func takeOver(t *testing.T, operator string) {
	t.Helper()
	kubectl(t, "label", "crd", crdName, "app.kubernetes.io/managed-by-")
	kubectl(t, "annotate", "crd", crdName, "meta.helm.sh/release-name-", "meta.helm.sh/release-namespace-")
	applyExtension(t, operator, suite.next.catalogImage, suite.next.version)
	waitFor(t, operator, "OLM v1 to refuse a CRD that it did not make", patience, func(ctx context.Context) error {
		_, said, err := readExtension(ctx)
		if err != nil || !strings.Contains(said, "cannot be managed by operator-controller") {
			return errors.Join(err, errors.New(said))
		}
		return nil
	})
	kubectl(t, "label", "crd", crdName, "app.kubernetes.io/managed-by=Helm")
	kubectl(t, "annotate", "crd", crdName, "meta.helm.sh/release-name="+packageName, "meta.helm.sh/release-namespace="+operator)
}

// removeExtensionAtEnd uninstalls the operator from OLM v1 when the test ends. OLM needs the
// ServiceAccount in the operator's namespace to uninstall, so call it after the namespace was
// created.
func removeExtensionAtEnd(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
		defer cancel()
		must(t, removeExtension(ctx))
	})
}

// removeExtension uninstalls the operator from OLM v1, and waits until that is done. It does
// nothing if OLM v1 is not installed.
func removeExtension(ctx context.Context) error {
	return eventually(ctx, func(ctx context.Context) error {
		for _, kind := range []string{"ClusterExtension", "ClusterCatalog"} {
			object := objectOf(olmV1API, kind, packageName)
			switch err := suite.admin.Delete(ctx, object); {
			case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
			case err != nil:
				return err
			default:
				return fmt.Errorf("%s %s is still there", kind, packageName)
			}
		}
		return nil
	})
}
