package integration

// This file tests the guard of operators that OLM v0 has installed. The tests write what OLM
// writes.

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/pkg/certificates"
	"github.com/example/nginx-operator/test/harness"
)

const olmSecret = "nginx-operator-controller-manager-service-cert"

// TestOwnerOfTheCertificateUnderOLM verifies that under OLM, a new release adds its
// ClusterServiceVersion to the owners of the Secret before it is ready. The previous release's
// owner reference stays.
func TestOwnerOfTheCertificateUnderOLM(t *testing.T) {
	before, now, secret := installedByOLM(t)

	reads := startReader(t)
	standby := must1(startOperator("OPERATOR_CONDITION_NAME=" + now.GetName()))(t)
	defer standby.Kill()
	owners := []metav1.OwnerReference{ownerReference(before), ownerReference(now)}
	if diff := gocmp.Diff(owners, getSecret(t, olmSecret).OwnerReferences); diff != "" {
		t.Errorf("when the operator is ready the owners are wrong:\n%s", diff)
	}
	must(t, serves(t, standby, secret.Data))

	// OLM recreates the Secret.
	must(t, suite.admin.Delete(t.Context(), getSecret(t, olmSecret)))
	create(t, secret.DeepCopy())
	waitFor(t, func() error {
		if diff := gocmp.Diff(owners, getSecret(t, olmSecret).OwnerReferences); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
	reads.finish(t)
}

// TestConversionThatOLMDefers verifies the conversion under a proposed change of OLM
// (operator-lifecycle-manager #3892, commit 759758e8c0414809b79c96a269eb18401f457571). This OLM
// writes the CRD of the bundle first, as others do, and spec.conversion only at checks of a release
// whose Deployment is available. So the next release has to become ready without the second write.
// That write is meant to have the CA of the Secret, and then no read fails. At that commit, it has
// no CA. The admission for the CRD, which corrects both writes, is away.
func TestConversionThatOLMDefers(t *testing.T) {
	before, now, secret := installedByOLM(t)
	withoutAdmission(t)
	reads := startReader(t)
	previous := must1(startOperator("OPERATOR_CONDITION_NAME=" + before.GetName()))(t)
	suite.operator.Stop()
	defer startNextOperator(t)
	defer previous.Kill()

	// The previous release restores what the InstallPlan writes. Reads fail until then.
	writeConversion(t, `{"caBundle":null,"url":null,"service":{"namespace":"system","name":"webhook-service","path":"/convert"}}`)
	next := must1(startOperator("OPERATOR_CONDITION_NAME=" + now.GetName()))(t)
	defer next.Kill()
	replicas := []*harness.Manager{previous, next}
	for _, replica := range replicas {
		must(t, serves(t, replica, secret.Data))
	}
	reads.goOn(t)

	own := conversionConfig(t)
	for title, ca := range map[string][]byte{"the CA of the Secret": secret.Data["olmCAKey"], "no CA": nil} {
		t.Run(title, func(t *testing.T) {
			deferred := must1(json.Marshal(map[string]any{"caBundle": ca, "url": own["url"], "service": nil}))(t)
			for range 2 { // at each check
				failed := reads.Counts().Failed
				written := writeConversion(t, string(deferred))
				for _, replica := range replicas {
					waitFor(t, func() error { return serves(t, replica, secret.Data) })
				}
				reads.goOn(t)
				time.Sleep(time.Second) // a restore takes a tenth of it
				failed, restores := reads.Counts().Failed-failed, crd(t).GetGeneration()-written
				t.Logf("after OLM's write, %d reads failed, and the guard wrote the CRD %d times", failed, restores)
				if ca != nil && (failed != 0 || restores != 0) {
					t.Error("want none of both, because the CA was right")
				}
			}
		})
	}
	if reads.stop(t); reads.wrong > 0 {
		t.Errorf("%d reads were wrong", reads.wrong)
	}
}

// installedByOLM creates the ClusterServiceVersions of a release and of the next one, and the
// Secret that OLM created for the first one, until the test ends.
func installedByOLM(t *testing.T) (before, now *unstructured.Unstructured, secret *corev1.Secret) {
	t.Helper()
	grantOnlyWithOLM(t)
	installCSVCRD(t)
	before, now = newCSV(t, "nginx-operator.v0.1.0"), newCSV(t, "nginx-operator.v0.2.0")
	secret = newOLMSecret(t, before)
	create(t, secret.DeepCopy())
	t.Cleanup(func() { must(t, suite.admin.Delete(context.Background(), secret)) })
	return before, now, secret
}

// conversionConfig returns the clientConfig of the conversion webhook.
func conversionConfig(t *testing.T) map[string]any {
	t.Helper()
	config, _, err := unstructured.NestedMap(crd(t).Object, "spec", "conversion", "webhook", "clientConfig")
	must(t, err)
	return config
}

// writeConversion patches the clientConfig of the conversion webhook. It returns the generation of
// the written CRD.
func writeConversion(t *testing.T, clientConfig string) int64 {
	t.Helper()
	object := crd(t)
	patch := `{"spec":{"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":` + clientConfig + `}}}}`
	must(t, suite.admin.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, []byte(patch))))
	return object.GetGeneration()
}

// newOLMSecret returns a Secret with a certificate as OLM creates it for a release.
func newOLMSecret(t *testing.T, csv *unstructured.Unstructured) *corev1.Secret {
	t.Helper()
	data := must1(certificates.New(webhookHosts(t), certificates.Lifetime))(t)
	data["olmCAKey"] = data[certificates.CAKey]
	delete(data, certificates.CAKey)
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: operatorNamespace, Name: olmSecret, OwnerReferences: []metav1.OwnerReference{ownerReference(csv)},
		},
		Type: corev1.SecretTypeTLS,
		Data: data,
	}
}

func ownerReference(csv *unstructured.Unstructured) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: csv.GetAPIVersion(), Kind: csv.GetKind(), Name: csv.GetName(), UID: csv.GetUID(),
		Controller: ptr.To(false), BlockOwnerDeletion: ptr.To(false),
	}
}

func installCSVCRD(t *testing.T) {
	t.Helper()
	module := must1(exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/operator-framework/api").Output())(t)
	file := filepath.Join(strings.TrimSpace(string(module)), "crds", "operators.coreos.com_clusterserviceversions.yaml")
	object := &unstructured.Unstructured{}
	must(t, yaml.Unmarshal(must1(os.ReadFile(file))(t), &object.Object))
	create(t, object)
	t.Cleanup(func() { must(t, suite.admin.Delete(context.Background(), object)) })
}

func newCSV(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	csv := &unstructured.Unstructured{}
	must(t, yaml.Unmarshal([]byte(`
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
spec:
  displayName: NGINX
  install:
    strategy: deployment
    spec: {deployments: []}
`), &csv.Object))
	csv.SetNamespace(operatorNamespace)
	csv.SetName(name)
	waitFor(t, func() error { return suite.admin.Create(t.Context(), csv) })
	return csv
}
