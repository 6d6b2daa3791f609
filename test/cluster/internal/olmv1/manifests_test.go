package olmv1

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/example/nginx-operator/test/cluster/internal/helmtest"
	"github.com/example/nginx-operator/test/cluster/internal/host"
	"github.com/example/nginx-operator/test/cluster/internal/tools"
)

// TestPatched checks that the kustomization applies to the manifests of the release.
func TestPatched(t *testing.T) {
	l := helmtest.Repo(t)
	source, version := helmtest.Source(t, l, tools.OLMv1)
	text, err := patched(l.Bin("kubectl"), source, version)
	if err != nil {
		t.Fatalf("make bin/kubectl builds kubectl: %v", err)
	}
	for want, count := range map[string]int{
		"--pull-cas-dir=/var/run/secrets/kubernetes.io/serviceaccount":       2,
		"--feature-gates=WebhookProviderCertManager=true":                    1,
		"image: quay.io/operator-framework/catalogd:" + version:              1,
		"image: quay.io/operator-framework/operator-controller:" + version:   1,
		"cert-manager.io/inject-ca-from: olmv1-system/catalogd-service-cert": 1,
		"cert-manager.io/inject-ca-from-secret:":                             0,
		"cert-manager.io/allow-direct-injection:":                            0,
		":devel": 0,
	} {
		if got := strings.Count(string(text), want); got != count {
			t.Errorf("%s: %d times, want %d", want, got, count)
		}
	}
}

// TestCertManager renders the chart of cert-manager without its CRDs.
func TestCertManager(t *testing.T) {
	l := helmtest.Repo(t)
	source, version := helmtest.Source(t, l, tools.CertManager)
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
}
