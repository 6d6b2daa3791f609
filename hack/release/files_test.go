package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// realRelease changes to a copy of what a release of this repository is made from. The programs of
// the plugin, the documents of the images, and the registry are those of repository.
func realRelease(t *testing.T) *project {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	repository(t)
	for _, dir := range []string{"config", "bundle", "charts"} {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(root, dir)); dir == "charts" && err != nil {
			continue
		}
		if err := os.CopyFS(dir, os.DirFS(filepath.Join(root, dir))); err != nil {
			t.Fatal(err)
		}
	}
	made := map[string]string{}
	for _, file := range []string{"VERSION", "CHANGELOG.md", "LICENSE", krewManifest} {
		content, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		made[file] = string(content)
	}
	for _, image := range []string{"nginx-operator", "nginx-operator-bundle", "nginx-operator-catalog", "nginx-operator-scorecard"} {
		made["dist/sbom/"+image+".spdx.json"] = "SBOM of " + image
		made["dist/provenance/"+image+".intoto.json"] = "provenance of " + image
	}
	for _, platform := range pluginPlatforms {
		made[filepath.Join(pluginDir, platform, pluginProgram(platform))] = "program for " + platform
	}
	files(t, made)
	t.Setenv("RELEASE_KEY", "")
	p, err := load()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// newKey writes a key for signatures, and returns its file.
func newKey(t *testing.T) (file string, public *ecdsa.PublicKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "release.key")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return file, &key.PublicKey
}

// readRelease returns the files of a directory without subdirectories.
func readRelease(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		out[entry.Name()] = string(content)
	}
	return out
}

// TestReleaseIsReproducible checks that two runs give the same files, that nothing of an earlier
// release remains, and that the checksums and the signature are those of the files.
func TestReleaseIsReproducible(t *testing.T) {
	p := realRelease(t)
	key, public := newKey(t)
	t.Setenv("RELEASE_KEY", key)
	files(t, map[string]string{"dist/first/left.txt": "of an earlier release"})
	for _, dir := range []string{"dist/first", "dist/second"} {
		if err := p.packRelease(dir); err != nil {
			t.Fatal(err)
		}
	}
	made := readRelease(t, "dist/first")
	if diff := cmp.Diff(made, readRelease(t, "dist/second")); diff != "" {
		t.Errorf("the second run differs: %s", diff)
	}
	want := []string{
		"SHA256SUMS", "SHA256SUMS.sig", "community-operators.tar.gz", "install-cert-manager.yaml", "install.yaml",
		"krew.yaml", "kubectl-nginx_darwin_amd64.tar.gz", "kubectl-nginx_darwin_arm64.tar.gz", "kubectl-nginx_linux_amd64.tar.gz",
		"kubectl-nginx_linux_arm64.tar.gz", "kubectl-nginx_windows_amd64.zip", "kubectl-nginx_windows_arm64.zip",
		"nginx-operator-bundle.intoto.json", "nginx-operator-bundle.spdx.json", "nginx-operator-catalog.intoto.json",
		"nginx-operator-catalog.spdx.json", "nginx-operator-scorecard.intoto.json", "nginx-operator-scorecard.spdx.json",
		"nginx-operator.intoto.json", "nginx-operator.spdx.json", "release-notes.md",
	}
	if _, err := os.Stat(chartDir); err == nil {
		want = append(want, "nginx-operator-"+p.version+".tgz")
	}
	var got []string
	for name, content := range made {
		got = append(got, name)
		line := fmt.Sprintf("%x  %s\n", sha256.Sum256([]byte(content)), name)
		if !strings.HasPrefix(name, sumsFile) && !strings.Contains(made[sumsFile], line) {
			t.Errorf("SHA256SUMS does not have %q", line)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files of the release: %s", diff)
	}
	signature, err := base64.StdEncoding.DecodeString(made[sumsFile+".sig"])
	sum := sha256.Sum256([]byte(made[sumsFile]))
	if err != nil || !ecdsa.VerifyASN1(public, sum[:], signature) {
		t.Errorf("the signature %q is not that of SHA256SUMS (%v)", made[sumsFile+".sig"], err)
	}
}

// TestUnsigned checks that a release without a key has no signature, and that a wrong key is an
// error.
func TestUnsigned(t *testing.T) {
	if signature, err := signed([]byte("text"), ""); signature != nil || err != nil {
		t.Errorf("without a key: got %q, %v", signature, err)
	}
	wrong := filepath.Join(t.TempDir(), "wrong.key")
	for _, content := range []string{
		"text", "-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----\nAA==\n-----END ENCRYPTED SIGSTORE PRIVATE KEY-----\n",
		"-----BEGIN PRIVATE KEY-----\nAA==\n-----END PRIVATE KEY-----\n",
	} {
		if err := os.WriteFile(wrong, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := signed([]byte("text"), wrong); err == nil || !strings.Contains(err.Error(), "openssl genpkey") {
			t.Errorf("%q is a key: %v", content, err)
		}
	}
}

// objectsOf returns the objects of a manifest, in order.
func objectsOf(t *testing.T, manifest string) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	for text := range strings.SplitSeq(manifest, "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), object); err != nil {
			t.Fatal(err)
		}
		out = append(out, object)
	}
	return out
}

// TestInstallManifests checks that the manifests run the operator by its digest and the operands by
// their tags, and that cert-manager's manifest adds only its objects and annotations.
func TestInstallManifests(t *testing.T) {
	p := realRelease(t)
	operator := "ghcr.io/example/nginx-operator@" + digestOf("ghcr.io/example/nginx-operator:v"+p.version)
	made, err := p.manifestFiles(operator)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range made {
		if !strings.HasPrefix(string(text), "# nginx-operator "+p.version+": kubectl apply --server-side -f "+
			"https://github.com/example/nginx-operator/releases/download/v"+p.version+"/"+name+"\n") {
			t.Errorf("%s begins with %.200s", name, text)
		}
		if strings.Contains(string(text), "ghcr.io/example/nginx-operator:") {
			t.Errorf("%s has the operator's image by tag", name)
		}
	}
	plain, withCertManager := objectsOf(t, string(made["install.yaml"])), objectsOf(t, string(made["install-cert-manager.yaml"]))
	if plain[0].GetKind() != "Namespace" || plain[1].GetKind() != "CustomResourceDefinition" {
		t.Errorf("the first objects are %s and %s", plain[0].GetKind(), plain[1].GetKind())
	}
	at := slices.IndexFunc(plain, func(object *unstructured.Unstructured) bool { return object.GetKind() == "Deployment" })
	deployment := &appsv1.Deployment{}
	text, err := plain[at].MarshalJSON()
	if err == nil {
		err = yaml.Unmarshal(text, deployment)
	}
	if err != nil {
		t.Fatal(err)
	}
	container := deployment.Spec.Template.Spec.Containers[0]
	if container.Image != operator {
		t.Errorf("the operator is %s, want %s", container.Image, operator)
	}
	operands := 0
	for _, variable := range container.Env {
		if strings.HasPrefix(variable.Name, "RELATED_IMAGE_") {
			operands++
			if strings.Contains(variable.Value, "@") || !strings.Contains(variable.Value, ":") {
				t.Errorf("%s is %s and not a tag", variable.Name, variable.Value)
			}
		}
	}
	if operands == 0 {
		t.Error("the operator has no images for its operands")
	}
	key := func(object *unstructured.Unstructured) string { return object.GetKind() + " " + object.GetName() }
	injected, added := []string{}, []string{}
	for _, object := range withCertManager {
		if !slices.ContainsFunc(plain, func(other *unstructured.Unstructured) bool { return key(other) == key(object) }) {
			added = append(added, key(object))
		}
		if object.GetAnnotations()["cert-manager.io/inject-ca-from"] != "" {
			injected = append(injected, object.GetKind())
		}
	}
	slices.Sort(added)
	slices.Sort(injected)
	wantAdded := []string{"Certificate nginx-operator-serving-cert", "Issuer nginx-operator-selfsigned-issuer"}
	wantInjected := []string{"CustomResourceDefinition", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}
	if diff := cmp.Diff([][]string{wantAdded, wantInjected}, [][]string{added, injected}); diff != "" {
		t.Errorf("cert-manager's objects and annotations: %s", diff)
	}
}

// TestReleaseNotes checks that the notes are the dated section of the release, with links that work
// outside of the repository.
func TestReleaseNotes(t *testing.T) {
	const changelog = "# Changelog\n\n## 0.2.0 - 2026-02-01\n\nNew [field](docs/a.md#b), [license](LICENSE), [other](https://x.org/y).\n\n" +
		"### Added\n\n- More.\n\n## 0.1.0 - 2026-01-01\n\nFirst.\n\n## 0.0.1 - 2026-01-01\n\n"
	got, err := releaseNotes(changelog, "0.2.0")
	const blob = "https://github.com/example/nginx-operator/blob/v0.2.0/"
	want := "# nginx-operator 0.2.0\n\nReleased on 2026-02-01.\n\nNew [field](" + blob + "docs/a.md#b), [license](" + blob +
		"LICENSE), [other](https://x.org/y).\n\n### Added\n\n- More.\n"
	if err != nil || got != want {
		t.Errorf("got %q (%v)", got, err)
	}
	for _, version := range []string{"0.3.0", "0.0.1", "0.2"} {
		if notes, err := releaseNotes(changelog, version); err == nil {
			t.Errorf("%s has the notes %q", version, notes)
		}
	}
}

// TestDocumentsAreNeeded checks that a release without the SBOM of an image is an error.
func TestDocumentsAreNeeded(t *testing.T) {
	p := realRelease(t)
	if err := os.Remove("dist/sbom/nginx-operator-catalog.spdx.json"); err != nil {
		t.Fatal(err)
	}
	if err := p.packRelease(releaseDir); err == nil || !strings.Contains(err.Error(), "make images") {
		t.Errorf("got the error %v", err)
	}
}

// TestChart checks that the packed chart has the digest of the operator, and that a chart of another
// version or without image.digest is an error.
func TestChart(t *testing.T) {
	p := realRelease(t)
	if err := os.RemoveAll(chartDir); err != nil {
		t.Fatal(err)
	}
	if made, err := p.chartFiles("r/me/nginx-operator@sha256:12"); len(made) != 0 || err != nil {
		t.Errorf("without a chart: got %d files, %v", len(made), err)
	}
	chart := "name: nginx-operator\nversion: " + p.version + "\n"
	values := "image:\n  repository: ghcr.io/example/nginx-operator\n\n  # none\n  digest: \"\"\nother:\n  digest: \"\"\n"
	files(t, map[string]string{chartDir + "/Chart.yaml": chart, chartDir + "/values.yaml": values, chartDir + "/templates/a.yaml": "a"})
	made, err := p.chartFiles("r/me/nginx-operator@sha256:12")
	if err != nil {
		t.Fatal(err)
	}
	got := untar(t, made["nginx-operator-"+p.version+".tgz"])
	want := map[string]string{
		"nginx-operator/Chart.yaml": chart, "nginx-operator/templates/a.yaml": "a",
		"nginx-operator/values.yaml": "image:\n  repository: r/me/nginx-operator\n\n  # none\n  digest: sha256:12\nother:\n  digest: \"\"\n",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the chart: %s", diff)
	}
	for _, wrong := range []map[string]string{
		{chartDir + "/values.yaml": "image:\n  tag: v1\nother:\n  digest: \"\"\n"},
		{chartDir + "/values.yaml": values, chartDir + "/Chart.yaml": "version: 0.0.1\n"},
	} {
		files(t, wrong)
		if _, err := p.chartFiles("r/me/nginx-operator@sha256:12"); err == nil {
			t.Errorf("%v is packed", wrong)
		}
	}
}

// untar returns the files of a compressed tar archive.
func untar(t *testing.T, archive []byte) map[string]string {
	t.Helper()
	plain, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for reader := tar.NewReader(plain); ; {
		header, err := reader.Next()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		out[header.Name] = string(text)
		if strings.Contains(header.Name, pluginName) && header.Mode&0o111 == 0 {
			t.Errorf("%s is not executable: %o", header.Name, header.Mode)
		}
	}
}

// unzip returns the files of a zip archive.
func unzip(t *testing.T, archive []byte) map[string]string {
	t.Helper()
	reader, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, file := range reader.File {
		content, err := file.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(content)
		if err != nil {
			t.Fatal(err)
		}
		out[file.Name] = string(text)
	}
	return out
}
