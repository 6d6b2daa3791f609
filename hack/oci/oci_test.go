package main

import (
	"archive/tar"
	"bytes"
	"context"
	"io"
	"log"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	intoto "github.com/in-toto/attestation/go/v1"
	spdxjson "github.com/spdx/tools-golang/json"
	spdx "github.com/spdx/tools-golang/spdx/v2/v2_3"
	"github.com/spdx/tools-golang/spdxlib"
	"google.golang.org/protobuf/encoding/protojson"
)

const (
	testImage = "ghcr.io/example/nginx-operator-catalog:v0.5.0"
	testBase  = "quay.io/operator-framework/opm:v1.73.0"
	// commitTime has a different time zone than the documents, which use UTC.
	commitTime = "2026-11-23T11:29:15+01:00"
	testCommit = "cc9760fcc9760fcc9760fcc9760fcc9760fcc976"
)

var platforms = []v1.Platform{{OS: "linux", Architecture: "amd64"}, {OS: "linux", Architecture: "arm64"}}

// startRegistry starts an in-process registry, with or without the referrers API.
func startRegistry(t *testing.T, referrers bool) location {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.WithReferrersSupport(referrers), registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	return location(strings.TrimPrefix(server.URL, "http://"))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newLayer returns a layer that contains the files.
func newLayer(t *testing.T, files map[string][]byte) v1.Layer {
	t.Helper()
	var archive bytes.Buffer
	writer := tar.NewWriter(&archive)
	for _, file := range slices.Sorted(maps.Keys(files)) {
		must(t, writer.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: file, Mode: 0o755, Size: int64(len(files[file]))}))
		if _, err := writer.Write(files[file]); err != nil {
			t.Fatal(err)
		}
	}
	must(t, writer.Close())
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive.Bytes())), nil })
	must(t, err)
	return layer
}

// push pushes an index with one image per platform. Each image has all layers.
func (l location) push(t *testing.T, image string, layers ...v1.Layer) {
	t.Helper()
	index := v1.ImageIndex(empty.Index)
	for _, platform := range platforms {
		one, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{OS: platform.OS, Architecture: platform.Architecture})
		if err == nil {
			one, err = mutate.AppendLayers(one, layers...)
		}
		must(t, err)
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: one, Descriptor: v1.Descriptor{Platform: &platform}})
	}
	ref, err := l.reference(image)
	must(t, err)
	must(t, remote.WriteIndex(ref, index))
}

// pushCatalog pushes a base image, and an image from it with a Go program and two other files.
func (l location) pushCatalog(t *testing.T) {
	t.Helper()
	base := newLayer(t, map[string][]byte{"etc/passwd": []byte("root")})
	l.push(t, testBase, base)
	l.push(t, testImage, base, newLayer(t, map[string][]byte{
		"bin/opm": ownProgram(t), "bin/text": []byte("#!/bin/sh"), "bin/other": []byte("\x7fELF and no Go"),
	}))
}

// ownProgram returns the binary of this test, which is a Go program with modules.
func ownProgram(t *testing.T) []byte {
	t.Helper()
	file, err := os.Executable()
	must(t, err)
	return readFile(t, file)
}

func (l location) attest(t *testing.T, out string, more ...string) error {
	t.Helper()
	return run(t.Context(), slices.Concat([]string{
		"attest", "-registry", string(l), "-commit", testCommit, "-time", commitTime, "-out", out,
		"-parameter", "target=catalog-image", "-parameter", "CLUSTER=external",
	}, more, []string{testImage}))
}

func readFile(t *testing.T, file string) []byte {
	t.Helper()
	raw, err := os.ReadFile(file)
	must(t, err)
	return raw
}

func readSBOM(t *testing.T, raw []byte) *spdx.Document {
	t.Helper()
	document := &spdx.Document{}
	must(t, spdxjson.ReadInto(bytes.NewReader(raw), document))
	if err := spdxlib.ValidateDocument(document); err != nil {
		t.Errorf("the SBOM is not valid: %v", err)
	}
	return document
}

// TestDocumentsAreBesideTheImage checks that both documents are in the directory and refer to the
// image, with and without the referrers API of the registry. A second run adds nothing.
func TestDocumentsAreBesideTheImage(t *testing.T) {
	for _, referrers := range []bool{true, false} {
		l, out := startRegistry(t, referrers), t.TempDir()
		l.pushCatalog(t)
		want := map[string]string{}
		for range 2 {
			must(t, l.attest(t, out, "-base", testBase))
			for mediaType, file := range map[string]string{
				spdxMediaType: "sbom/nginx-operator-catalog.spdx.json", inTotoMediaType: "provenance/nginx-operator-catalog.intoto.json",
			} {
				content := filepath.Base(file) + "\n" + string(readFile(t, filepath.Join(out, file)))
				if before := want[mediaType]; before != "" && before != content {
					t.Errorf("%s is another one when it is made again", file)
				}
				want[mediaType] = content
			}
		}
		digest, err := l.digest(t.Context(), testImage)
		must(t, err)
		if diff := cmp.Diff(want, l.attached(t, digest)); diff != "" {
			t.Errorf("referrers %v: %s", referrers, diff)
		}
		_, err = l.digest(t.Context(), strings.TrimSuffix(testImage, "v0.5.0")+"sha256-"+digest.Hex)
		if (err == nil) == referrers {
			t.Errorf("referrers %v: the tag for registries without: %v", referrers, err)
		}
	}
}

// attached returns the documents that refer to the digest of the image, by the artifact type in
// their manifests. Each value is the file name and the content. The list of the test registry
// cannot be used for the type: it has only the type of the configuration.
func (l location) attached(t *testing.T, digest v1.Hash) map[string]string {
	t.Helper()
	ref, err := l.reference(testImage)
	must(t, err)
	listed, err := l.referrers(t.Context(), testImage)
	must(t, err)
	out := map[string]string{}
	for _, found := range listed {
		artifact, err := remote.Image(ref.Context().Digest(found.Digest.String()))
		must(t, err)
		written, err := artifact.Manifest()
		if err != nil || written.Subject.Digest != digest || len(written.Layers) != 1 {
			t.Fatalf("got %+v (%v)", written, err)
		}
		layer, err := remote.Layer(ref.Context().Digest(written.Layers[0].Digest.String()))
		must(t, err)
		content, err := layer.Compressed()
		must(t, err)
		raw, err := io.ReadAll(content)
		if err != nil || out[written.ArtifactType] != "" {
			t.Fatalf("read %s: %v; had %q", written.ArtifactType, err, out[written.ArtifactType])
		}
		out[written.ArtifactType] = written.Layers[0].Annotations[titleAnnotation] + "\n" + string(raw)
	}
	return out
}

// TestSBOM checks that the SBOM has every module in the program's build information, with version,
// checksum, and package URL. Each platform's variant contains the layer, and the layer the program.
func TestSBOM(t *testing.T) {
	l, out := startRegistry(t, true), t.TempDir()
	l.pushCatalog(t)
	must(t, l.attest(t, out, "-base", testBase))
	document := readSBOM(t, readFile(t, filepath.Join(out, "sbom/nginx-operator-catalog.spdx.json")))
	if document.SPDXVersion != "SPDX-2.3" || document.CreationInfo.Created != "2026-11-23T10:29:15Z" || document.DocumentName != testImage {
		t.Errorf("got %s of %s for %s", document.SPDXVersion, document.CreationInfo.Created, document.DocumentName)
	}
	var programs []*spdx.Package
	for _, variant := range related(document, related(document, nil, "DESCRIBES"), "CONTAINS") {
		layers := related(document, []*spdx.Package{variant}, "CONTAINS")
		bases := related(document, []*spdx.Package{variant}, "DESCENDANT_OF")
		if len(layers) != 2 || len(bases) != 1 || bases[0].PackageName+":"+bases[0].PackageVersion != testBase {
			t.Fatalf("%s has %d layers and is based on %v", variant.PackageComment, len(layers), bases)
		}
		if diff := cmp.Diff(related(document, bases, "CONTAINS")[0].PackageName, layers[0].PackageName); diff != "" {
			t.Error(diff)
		}
		programs = append(programs, related(document, layers, "CONTAINS")...)
	}
	if len(programs) != len(platforms) || programs[0].PackageName != "/bin/opm" || programs[0] != programs[1] {
		t.Fatalf("got the programs %v", programs)
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || len(info.Deps) < 10 {
		t.Fatalf("this test has %d modules", len(info.Deps))
	}
	want := map[string]string{
		"pkg:golang/stdlib@" + strings.TrimPrefix(info.GoVersion, "go"): "",
		"pkg:golang/github.com/example/nginx-operator/hack/oci@v0.5.0":  "",
	}
	for _, m := range info.Deps {
		want["pkg:golang/"+strings.ToLower(m.Path)+"@"+strings.ReplaceAll(m.Version, "+", "%2B")] = hexSum(m.Sum)
	}
	got := map[string]string{}
	for _, module := range related(document, programs[:1], "DEPENDS_ON") {
		sum := ""
		for _, checksum := range module.PackageChecksums {
			sum = checksum.Value
		}
		got[module.PackageExternalReferences[0].Locator] = sum
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("modules (-build information +SBOM):\n%s", diff)
	}
	const sum = "2c247b6e1073c059b0587201ae405c9d662c29607a0641af4849762d433a3c79"
	if got := hexSum("h1:LCR7bhBzwFmwWHIBrkBcnWYsKWB6BkGvSEl2LUM6PHk="); got != sum {
		t.Errorf("got the checksum %s", got)
	}
}

// related returns the packages to which the packages in from have the relationship how. If from is
// nil, it returns the packages to which the document has it.
func related(document *spdx.Document, from []*spdx.Package, how string) (out []*spdx.Package) {
	for _, relationship := range document.Relationships {
		starts := from == nil && relationship.RefA.ElementRefID == "DOCUMENT" || slices.ContainsFunc(from, func(p *spdx.Package) bool {
			return p.PackageSPDXIdentifier == relationship.RefA.ElementRefID
		})
		if !starts || relationship.Relationship != how {
			continue
		}
		for _, p := range document.Packages {
			if p.PackageSPDXIdentifier == relationship.RefB.ElementRefID {
				out = append(out, p)
			}
		}
	}
	return out
}

func TestProvenance(t *testing.T) {
	l, out := startRegistry(t, true), t.TempDir()
	l.pushCatalog(t)
	digest := func(image string) string {
		found, err := l.digest(t.Context(), image)
		must(t, err)
		return found.Hex
	}
	must(t, l.attest(t, out, "-base", testBase, "-modified"))
	raw := readFile(t, filepath.Join(out, "provenance/nginx-operator-catalog.intoto.json"))
	var statement intoto.Statement
	must(t, protojson.Unmarshal(raw, &statement))
	if err := statement.Validate(); err != nil {
		t.Error(err)
	}
	info, _ := debug.ReadBuildInfo()
	want := map[string]any{
		"buildDefinition": map[string]any{
			"buildType":          buildType,
			"externalParameters": map[string]any{"target": "catalog-image", "CLUSTER": "external"},
			"resolvedDependencies": []any{
				map[string]any{
					"uri": "git+" + source, "digest": map[string]any{"gitCommit": testCommit}, "annotations": map[string]any{"modified": true},
				},
				map[string]any{
					"uri":    "pkg:oci/opm@sha256:" + digest(testBase) + "?repository_url=quay.io%2Foperator-framework%2Fopm&tag=v1.73.0",
					"digest": map[string]any{"sha256": digest(testBase)},
				},
			},
		},
		"runDetails": map[string]any{
			"builder": map[string]any{"id": builderID, "version": map[string]any{"go": strings.TrimPrefix(info.GoVersion, "go")}},
		},
	}
	if diff := cmp.Diff(want, statement.GetPredicate().AsMap()); diff != "" {
		t.Error(diff)
	}
	subject := statement.GetSubject()[0]
	if subject.GetName() != "ghcr.io/example/nginx-operator-catalog" || subject.GetDigest()["sha256"] != digest(testImage) {
		t.Errorf("got the subject %v", subject)
	}
}

// TestMoveTag checks that a tag moves to another image, that the images keep their own tags, and
// that an unknown image leaves the tag where it is.
func TestMoveTag(t *testing.T) {
	l := startRegistry(t, true)
	l.push(t, testImage, newLayer(t, map[string][]byte{"configs/a": []byte("a")}))
	const next, moving = "ghcr.io/example/nginx-operator-catalog:v0.6.0", "ghcr.io/example/nginx-operator-catalog:latest"
	l.push(t, next, newLayer(t, map[string][]byte{"configs/b": []byte("b")}))
	tag := func(image string) error {
		return run(t.Context(), []string{"tag", "-registry", string(l), image, "latest"})
	}
	digest := func(image string) string {
		found, err := l.digest(t.Context(), image)
		must(t, err)
		return found.String()
	}
	before := map[string]string{testImage: digest(testImage), next: digest(next)}
	for _, image := range []string{testImage, next} {
		must(t, tag(image))
		if digest(moving) != before[image] || digest(image) != before[image] {
			t.Errorf("latest is %s, want %s", digest(moving), before[image])
		}
	}
	for _, arguments := range [][]string{{"ghcr.io/example/nginx-operator-catalog:v9.9.9", "latest"}, {testImage, "no tag"}, {testImage}} {
		if err := run(t.Context(), append([]string{"tag", "-registry", string(l)}, arguments...)); err == nil {
			t.Errorf("%q is accepted", arguments)
		}
	}
	if digest(moving) != before[next] {
		t.Errorf("latest moved to %s", digest(moving))
	}
}

// TestBaseByDigest checks that a base with tag and digest gives the same documents as its tag does.
func TestBaseByDigest(t *testing.T) {
	l := startRegistry(t, true)
	l.pushCatalog(t)
	digest, err := l.digest(t.Context(), testBase)
	must(t, err)
	tagged, pinned := t.TempDir(), t.TempDir()
	must(t, l.attest(t, tagged, "-base", testBase))
	must(t, l.attest(t, pinned, "-base", testBase+"@"+digest.String()))
	for _, file := range []string{"provenance/nginx-operator-catalog.intoto.json", "sbom/nginx-operator-catalog.spdx.json"} {
		if diff := cmp.Diff(string(readFile(t, filepath.Join(tagged, file))), string(readFile(t, filepath.Join(pinned, file)))); diff != "" {
			t.Errorf("%s: %s", file, diff)
		}
	}
	other := strings.Repeat("0", 64)
	if err := l.attest(t, t.TempDir(), "-base", testBase+"@sha256:"+other); err == nil || !strings.Contains(err.Error(), other) {
		t.Errorf("a digest that the registry does not have: got the error %v", err)
	}
}

// TestImageFromScratch checks that a single-platform image contains its layers directly and has no
// base image.
func TestImageFromScratch(t *testing.T) {
	l, out := startRegistry(t, true), t.TempDir()
	made, err := mutate.AppendLayers(empty.Image, newLayer(t, map[string][]byte{"manifests/csv.yaml": []byte("kind: ClusterServiceVersion")}))
	must(t, err)
	ref, err := l.reference(testImage)
	must(t, err)
	must(t, remote.Write(ref, made))
	must(t, l.attest(t, out))
	document := readSBOM(t, readFile(t, filepath.Join(out, "sbom/nginx-operator-catalog.spdx.json")))
	var got []string
	for _, p := range document.Packages {
		got = append(got, p.PrimaryPackagePurpose)
	}
	if diff := cmp.Diff([]string{"CONTAINER", "ARCHIVE"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestWhatCannotBeAttested(t *testing.T) {
	l := startRegistry(t, true)
	l.push(t, testBase, newLayer(t, map[string][]byte{"etc/passwd": []byte("root")}))
	if err := l.attest(t, t.TempDir()); err == nil || !strings.Contains(err.Error(), "failed to find "+testImage) {
		t.Errorf("an image that was not pushed: got the error %v", err)
	}
	l.push(t, testImage, newLayer(t, map[string][]byte{"etc/passwd": []byte("another")}))
	if err := l.attest(t, t.TempDir(), "-base", testBase); err == nil || !strings.Contains(err.Error(), "build again") {
		t.Errorf("a base that the image does not have: got the error %v", err)
	}
	for _, args := range [][]string{nil, {"other"}, {"attest", testImage}, {"digest", "-unknown"}} {
		if err := run(context.Background(), args); err == nil {
			t.Errorf("%q is accepted", args)
		}
	}
}
