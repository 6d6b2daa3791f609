package olmv1

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/test/cluster/internal/helmtest"
	"github.com/example/nginx-operator/test/cluster/internal/host"
	"github.com/example/nginx-operator/test/cluster/internal/layout"
	"github.com/example/nginx-operator/test/cluster/internal/tools"
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
	got, err := patch(thisRepo(t).Bin("kubectl"), []byte(manifests), "v1.5.1")
	if err != nil {
		t.Fatalf("make bin/kubectl builds kubectl: %v", err)
	}
	if diff := cmp.Diff(patched, string(got)); diff != "" {
		t.Error(diff)
	}
}

func thisRepo(t *testing.T) layout.Layout {
	t.Helper()
	repo, err := layout.FindRepo()
	if err != nil {
		t.Fatal(err)
	}
	return layout.New(repo)
}

// TestCertManager renders the chart of cert-manager without its CRDs, and checks that these are
// complete.
func TestCertManager(t *testing.T) {
	l := thisRepo(t)
	source, err := tools.CertManager.Dir(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	version, err := tools.CertManager.Version(l)
	if err != nil {
		t.Fatal(err)
	}
	// The chart in the source has no version of its own.
	chart := t.TempDir()
	if err := os.CopyFS(chart, os.DirFS(filepath.Join(source, "deploy", "charts", "cert-manager"))); err != nil {
		t.Fatal(err)
	}
	template, err := os.ReadFile(filepath.Join(chart, "Chart.template.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	template = bytes.ReplaceAll(template, []byte("v0.1.0"), []byte(version))
	if err := host.WriteFile(filepath.Join(chart, "Chart.yaml"), template, 0o600); err != nil {
		t.Fatal(err)
	}
	helmtest.Compare(t, l, "cert-manager.yaml", certManagerName, chart, "startupapicheck.enabled=false")

	all, err := withCRDs(source)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for document := range bytes.SplitSeq(all, []byte("\n---\n")) {
		var object struct {
			Kind     string
			Metadata struct{ Labels map[string]string }
		}
		if err := yaml.Unmarshal(document, &object); err != nil {
			t.Errorf("%v: %s", err, document[:min(len(document), 300)])
		}
		kinds[object.Kind]++
		if object.Kind == "CustomResourceDefinition" && object.Metadata.Labels["app.kubernetes.io/instance"] != certManagerName {
			t.Errorf("a CRD has the labels %v", object.Metadata.Labels)
		}
	}
	if kinds["CustomResourceDefinition"] != 6 || kinds["Namespace"] != 1 || kinds["Deployment"] != 3 || bytes.Contains(all, []byte("{{")) {
		t.Errorf("got %v", kinds)
	}
}
