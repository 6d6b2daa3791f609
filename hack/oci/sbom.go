package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"path"
	"regexp"
	"runtime/debug"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/package-url/packageurl-go"
	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	spdx "github.com/spdx/tools-golang/spdx/v2/v2_3"
)

const (
	// source is the URL of the repository. Without the scheme, it is the path of the Go module.
	source      = "https://github.com/example/nginx-operator"
	noAssertion = "NOASSERTION"
	licence     = "Apache-2.0"
	supplier    = "The nginx-operator project"
	sumComment  = "The checksum of a Go module is its h1 sum of go.sum, a SHA-256 of the names and sums of its files, as " +
		"hexadecimal digits."
	sbomComment = "Made from the build information of the Go programs in the image. " + sumComment + " For files that are not Go " +
		"programs, it names the layers and the base image."
	programComment = "Made from the build information of the Go programs. " + sumComment
)

// build describes the build of an image.
type build struct {
	// commit is the commit that was built. modified reports whether files differed from it.
	commit   string
	modified bool
	// time is the time of the commit. It is the only time in the documents, so that the same commit
	// results in the same documents.
	time time.Time
	// parameters are the build parameters by name. Their values are strings.
	parameters map[string]any
}

// sbom is an SPDX document under construction. Shared packages, such as modules, are added only
// once.
type sbom struct {
	document *spdx.Document
	has      map[common.ElementID]bool
}

// newDocument returns a document without packages. id distinguishes it from the other documents of
// the commit.
func newDocument(name, id, comment string, b build) sbom {
	return sbom{has: map[common.ElementID]bool{}, document: &spdx.Document{
		SPDXVersion: spdx.Version, DataLicense: spdx.DataLicense, SPDXIdentifier: "DOCUMENT",
		DocumentName: name, DocumentNamespace: source + "/spdx/" + id + "/" + b.commit, DocumentComment: comment,
		CreationInfo: &spdx.CreationInfo{
			Creators: []common.Creator{{CreatorType: "Organization", Creator: supplier}, {CreatorType: "Tool", Creator: "nginx-operator-hack-oci"}},
			Created:  b.time.UTC().Format(time.RFC3339),
		},
	}}
}

// newProgramSBOM describes Go programs that are not in an image, and the modules of each.
func newProgramSBOM(name, release string, programs []program, b build) *spdx.Document {
	out := newDocument(name+" "+release, name+"/"+release, programComment, b)
	for _, p := range programs {
		out.addProgram("DOCUMENT", common.TypeRelationshipDescribe, p, release)
	}
	return out.document
}

// newSBOM describes an image: its variant for each platform, their layers, the Go programs in the
// layers, and the modules of each program. If the image has only one platform, it contains the
// layers directly.
func newSBOM(of image, b build) *spdx.Document {
	out := newDocument(of.tag.String(), of.short()+"/"+of.descriptor.Digest.Hex, sbomComment, b)
	top := newContainer(of.tag, of.descriptor.Digest, "")
	top.PackageSupplier = &common.Supplier{SupplierType: "Organization", Supplier: supplier}
	out.add("DOCUMENT", common.TypeRelationshipDescribe, top)
	for _, v := range of.variants {
		one := top
		if v.digest != of.descriptor.Digest {
			one = newContainer(of.tag, v.digest, v.platform.String())
			one.PackageSupplier = top.PackageSupplier
			out.add(top.PackageSPDXIdentifier, common.TypeRelationshipContains, one)
			out.relate(one.PackageSPDXIdentifier, common.TypeRelationshipVariantOf, top.PackageSPDXIdentifier)
		}
		for i, l := range v.layers {
			out.addLayer(one.PackageSPDXIdentifier, l, of.tag.TagStr())
			if of.base != nil && i < v.fromBase {
				base := newContainer(of.base.tag, of.base.digest, "")
				out.add(one.PackageSPDXIdentifier, common.TypeRelationshipDescendantOf, base)
				out.relate(base.PackageSPDXIdentifier, common.TypeRelationshipContains, layerID(l))
			}
		}
	}
	return out.document
}

// add adds a package, unless the document already has it, and its relationship to another element.
func (s sbom) add(to common.ElementID, how string, p *spdx.Package) {
	if !s.has[p.PackageSPDXIdentifier] {
		s.has[p.PackageSPDXIdentifier] = true
		s.document.Packages = append(s.document.Packages, p)
	}
	s.relate(to, how, p.PackageSPDXIdentifier)
}

// relate adds a relationship between two elements, unless the document already has it.
func (s sbom) relate(from common.ElementID, how string, to common.ElementID) {
	key := from + "/" + common.ElementID(how) + "/" + to
	if !s.has[key] {
		s.has[key] = true
		s.document.Relationships = append(s.document.Relationships,
			&spdx.Relationship{RefA: common.DocElementID{ElementRefID: from}, Relationship: how, RefB: common.DocElementID{ElementRefID: to}})
	}
}

// newContainer describes an image, or its variant for a platform if platform is set.
func newContainer(tag name.Tag, digest v1.Hash, platform string) *spdx.Package {
	out := newPackage("Image", digest.String(), repository(tag), tag.TagStr(), "CONTAINER", digest.Hex)
	out.PackageComment = platform
	out.PackageExternalReferences = byURL(ociURL(tag, digest, platform))
	return out
}

func layerID(l layer) common.ElementID { return elementID("Layer", l.digest.String()) }

func (s sbom) addLayer(to common.ElementID, l layer, release string) {
	out := newPackage("Layer", l.digest.String(), l.digest.String(), "", "ARCHIVE", l.digest.Hex)
	s.add(to, common.TypeRelationshipContains, out)
	for _, p := range l.programs {
		s.addProgram(out.PackageSPDXIdentifier, common.TypeRelationshipContains, p, release)
	}
}

// addProgram adds a program, its relationship to another element, and its modules.
func (s sbom) addProgram(to common.ElementID, how string, p program, release string) {
	out := newPackage("Program", p.sha256+p.path, p.path, mainVersion(p.info, release), "APPLICATION", p.sha256)
	out.PackageFileName = p.path
	out.PackageComment = "built by " + p.info.GoVersion + " of " + p.info.Path
	s.add(to, how, out)
	for _, m := range modules(p.info, release) {
		s.add(out.PackageSPDXIdentifier, common.TypeRelationshipDependsOn, newModule(m))
	}
}

// mainVersion returns the version of the program's main module. Programs of this repository are
// built without a module version, so their version is the release.
func mainVersion(info *debug.BuildInfo, release string) string {
	if own(info.Main) {
		return release
	}
	return strings.TrimPrefix(info.Main.Version, "(devel)")
}

func own(m debug.Module) bool {
	return strings.HasPrefix(m.Path+"/", strings.TrimPrefix(source, "https://")+"/")
}

// modules returns the modules of a program: the standard library, its main module, and its
// dependencies after replacements.
func modules(info *debug.BuildInfo, release string) []debug.Module {
	out := []debug.Module{{Path: "stdlib", Version: strings.TrimPrefix(strings.Fields(info.GoVersion + " ")[0], "go")}}
	if info.Main.Path != "" {
		out = append(out, debug.Module{Path: info.Main.Path, Version: mainVersion(info, release), Sum: info.Main.Sum})
	}
	for _, m := range info.Deps {
		out = append(out, *cmp.Or(m.Replace, m))
	}
	return out
}

func newModule(m debug.Module) *spdx.Package {
	out := newPackage("Module", m.Path+"@"+m.Version, m.Path, m.Version, "LIBRARY", hexSum(m.Sum))
	if own(m) {
		out.PackageLicenseDeclared = licence
		out.PackageSupplier = &common.Supplier{SupplierType: "Organization", Supplier: supplier}
	}
	namespace, last := path.Split(m.Path)
	out.PackageExternalReferences = byURL(
		packageurl.NewPackageURL(packageurl.TypeGolang, strings.TrimSuffix(namespace, "/"), last, m.Version, nil, "").ToString())
	return out
}

// hexSum returns a sum of go.sum as hexadecimal digits, or "" if h1 is empty or invalid. The main
// module has no sum.
func hexSum(h1 string) string {
	raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(h1, "h1:"))
	if err != nil {
		return ""
	}
	return hex.EncodeToString(raw)
}

// newPackage returns a package that is identified by kind and key. Required SPDX fields with an
// unknown value are NOASSERTION.
func newPackage(kind, key, name, version, purpose, sha256 string) *spdx.Package {
	out := &spdx.Package{
		PackageSPDXIdentifier: elementID(kind, key), PackageName: name, PackageVersion: version, PrimaryPackagePurpose: purpose,
		IsFilesAnalyzedTagPresent: true, PackageDownloadLocation: noAssertion,
		PackageLicenseConcluded: noAssertion, PackageLicenseDeclared: noAssertion, PackageCopyrightText: noAssertion,
	}
	if sha256 != "" {
		out.PackageChecksums = []common.Checksum{{Algorithm: common.SHA256, Value: sha256}}
	}
	return out
}

// byURL returns a reference to a package by its package URL.
func byURL(url string) []*spdx.PackageExternalReference {
	return []*spdx.PackageExternalReference{{
		Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL, Locator: url,
	}}
}

var notInID = regexp.MustCompile(`[^A-Za-z0-9.]+`)

// elementID returns an identifier without the characters that SPDX does not allow. The checksum
// distinguishes keys that become equal without these characters.
func elementID(kind, key string) common.ElementID {
	sum := sha256.Sum256([]byte(key))
	return common.ElementID(kind + "-" + notInID.ReplaceAllString(key, "-") + "-" + hex.EncodeToString(sum[:4]))
}

func encodeSBOM(document *spdx.Document) ([]byte, error) {
	var out bytes.Buffer
	if err := spdxjson.Write(document, &out, spdxjson.Indent("  "), spdxjson.EscapeHTML(false)); err != nil {
		return nil, fmt.Errorf("failed to encode the SBOM: %w", err)
	}
	return out.Bytes(), nil
}
