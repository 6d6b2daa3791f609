package olmv1

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/nginx-operator/test/cluster/internal/host"
)

// manifests has the parts of an OLM v1 release that the kustomization changes.
const manifests = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: catalogd-controller-manager
spec:
  template:
    spec:
      containers:
      - args:
        - --pull-cas-dir=/var/ca-certs
        image: quay.io/operator-framework/catalogd:devel
        name: manager
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: operator-controller-controller-manager
spec:
  template:
    spec:
      containers:
      - args:
        - --pull-cas-dir=/var/certs
        image: quay.io/operator-framework/operator-controller:devel
        name: manager
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata:
  name: olmv1-ca
spec:
  secretName: olmv1-ca
  secretTemplate:
    annotations:
      cert-manager.io/allow-direct-injection: "true"
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata:
  annotations:
    cert-manager.io/inject-ca-from-secret: cert-manager/olmv1-ca
  name: catalogd-mutating-webhook-configuration
`

const patched = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: catalogd-controller-manager
spec:
  template:
    spec:
      containers:
      - args:
        - --pull-cas-dir=/var/ca-certs
        - --pull-cas-dir=/var/run/secrets/kubernetes.io/serviceaccount
        image: quay.io/operator-framework/catalogd:v1.5.1
        name: manager
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: operator-controller-controller-manager
spec:
  template:
    spec:
      containers:
      - args:
        - --pull-cas-dir=/var/certs
        - --pull-cas-dir=/var/run/secrets/kubernetes.io/serviceaccount
        - --feature-gates=WebhookProviderCertManager=true
        image: quay.io/operator-framework/operator-controller:v1.5.1
        name: manager
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata:
  name: olmv1-ca
spec:
  secretName: olmv1-ca
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata:
  annotations:
    cert-manager.io/inject-ca-from: olmv1-system/catalogd-service-cert
  name: catalogd-mutating-webhook-configuration
`

func TestPatch(t *testing.T) {
	got, err := patch([]byte(manifests), "v1.5.1")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(patched, string(got)); diff != "" {
		t.Error(diff)
	}
}

func TestWriteChart(t *testing.T) {
	source, dir := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{
		"charts/cert-manager/Chart.template.yaml":       "name: cert-manager\nversion: v0.1.0\nappVersion: v0.1.0\n",
		"charts/cert-manager/values.yaml":               "replicaCount: 1\n",
		"charts/cert-manager/templates/deployment.yaml": "kind: Deployment\n",
		"crds/README.md":                                "# CRDs\n",
		"crds/crd-issuers.yaml":                         "kind: CustomResourceDefinition\n",
	} {
		if err := host.WriteFile(filepath.Join(source, "deploy", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := writeChart(dir, source, "v1.11.5"); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"Chart.yaml":                      "appVersion: v1.11.5\nname: cert-manager\nversion: v1.11.5\n",
		"values.yaml":                     "replicaCount: 1\n",
		"templates/deployment.yaml":       "kind: Deployment\n",
		"templates/crds/crd-issuers.yaml": "kind: CustomResourceDefinition\n",
	} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "templates", "crds", "README.md")); !os.IsNotExist(err) {
		t.Errorf("helm would render the README of the CRDs: %v", err)
	}
}
