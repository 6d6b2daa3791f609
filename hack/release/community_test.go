package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// ciSchema has the fields that operator-pipelines allows in ci.yaml
// (operatorcert/schemas/ci-schema.json). Below fbc, an unknown field is an error there.
// addReviewers is an option of k8s-operatorhub.
type ciSchema struct {
	UpdateGraph  string   `json:"updateGraph"`
	Reviewers    []string `json:"reviewers"`
	AddReviewers bool     `json:"addReviewers"`
	FBC          struct {
		Enabled                  bool             `json:"enabled"`
		VersionPromotionStrategy string           `json:"version_promotion_strategy"`
		CatalogMapping           []catalogMapping `json:"catalog_mapping"`
	} `json:"fbc"`
}

// releaseSchema has the fields of release-config.yaml
// (operatorcert/schemas/release-config-schema.json).
type releaseSchema struct {
	Merge            bool `json:"merge"`
	CatalogTemplates []struct {
		TemplateName   string   `json:"template_name"`
		Channels       []string `json:"channels"`
		DefaultChannel string   `json:"defaultChannel"`
		Replaces       string   `json:"replaces"`
		Skips          []string `json:"skips"`
		SkipRange      string   `json:"skipRange"`
	} `json:"catalog_templates"`
}

// submittedTemplate is a basic template of opm.
type submittedTemplate struct {
	Schema  string
	Entries []submittedBlob
}

type submittedBlob struct {
	Schema, Package, Name, Image, DefaultChannel string

	Entries []struct {
		channelEntry
		Reference struct{ Schema, Name string }
	}
}

// TestFirstSubmission checks the files for a repository that has no release: they are valid there,
// they name each other, and the graph is that of our catalog without replaces.
func TestFirstSubmission(t *testing.T) {
	p := realRelease(t)
	made, err := p.submissionFiles("ghcr.io/example/nginx-operator@" + digestOf("operator"))
	must(t, err)
	files := untar(t, made[submissionArchive])
	oldest, err := openShiftVersions("bundle")
	must(t, err)
	for name, catalogs := range map[string]string{"community-operators": "latest", "community-operators-prod": oldest} {
		root := name + "/operators/nginx-operator/"
		var ci ciSchema
		must(t, yaml.UnmarshalStrict([]byte(files[root+"ci.yaml"]), &ci))
		if !ci.FBC.Enabled || ci.UpdateGraph != "" || len(ci.Reviewers) == 0 || len(ci.FBC.CatalogMapping) != 1 {
			t.Fatalf("%s: ci.yaml is %+v", name, ci)
		}
		mapping := ci.FBC.CatalogMapping[0]
		if mapping.Type != "olm.template.basic" || mapping.CatalogNames[0] != catalogs {
			t.Errorf("%s: the catalogs are %+v, want %s first", name, mapping, catalogs)
		}
		template, release := readSubmitted(t, files, root, mapping.TemplateName, p.version)
		entry := entryOf(t, template, p.version)
		if entry.Replaces != "" || entry.SkipRange == "" {
			t.Errorf("%s: the graph has %+v", name, entry)
		}
		ours := ourEntry(t, p.version)
		ours.Replaces = ""
		if diff := cmp.Diff(ours, entry); diff != "" {
			t.Errorf("%s: the graph differs from our catalog: %s", name, diff)
		}
		testReleaseConfig(t, release, mapping.TemplateName, entry)
		for _, blob := range template.Entries {
			if blob.Schema == "olm.bundle" || blob.Schema == "olm.deprecations" {
				t.Errorf("%s: the template has %+v", name, blob)
			}
		}
	}
}

// TestNextSubmission checks the files for a repository that has an earlier release: its image, its
// edge to this release, and its deprecation.
func TestNextSubmission(t *testing.T) {
	p := realRelease(t)
	published := strings.TrimPrefix(ourEntry(t, p.version).Replaces, operatorName+".v")
	const image = "quay.io/x/nginx-operator@sha256:00"
	submit := func(version string) (map[string]string, error) {
		t.Helper()
		must(t, os.WriteFile(communityFile, fmt.Appendf(nil,
			"- name: r\n  catalogs: [latest]\n  published:\n  - {version: %s, image: %q}\n", version, image), 0o600))
		made, err := p.submissionFiles("ghcr.io/example/nginx-operator@" + digestOf("operator"))
		if err != nil {
			return nil, err
		}
		return untar(t, made[submissionArchive]), nil
	}
	files, err := submit(published)
	must(t, err)
	template, release := readSubmitted(t, files, "r/operators/nginx-operator/", communityTemplate, p.version)
	entry := entryOf(t, template, p.version)
	if diff := cmp.Diff(ourEntry(t, p.version), entry); diff != "" {
		t.Errorf("the graph differs from our catalog: %s", diff)
	}
	testReleaseConfig(t, release, communityTemplate, entry)
	if first := entryOf(t, template, published); first.Replaces != "" {
		t.Errorf("%s replaces %s, which the repository does not have", first.Name, first.Replaces)
	}
	var images, deprecated []string
	for _, blob := range template.Entries {
		if blob.Schema == "olm.bundle" {
			images = append(images, blob.Image)
		}
		for _, one := range blob.Entries {
			if blob.Schema == "olm.deprecations" {
				deprecated = append(deprecated, one.Reference.Name)
			}
		}
	}
	if !slices.Equal(images, []string{image}) || !slices.Equal(deprecated, []string{operatorName + ".v" + published}) {
		t.Errorf("the template has the images %v and deprecates %v", images, deprecated)
	}

	// The first release in stable is far behind this one.
	if _, err := submit("0.1.0"); err == nil || !strings.Contains(err.Error(), "submit that release first") {
		t.Errorf("a repository without the release that this one replaces: got the error %v", err)
	}
	if _, err := submit("0.0.9"); err == nil || !strings.Contains(err.Error(), "has 1 of the 2 releases") {
		t.Errorf("a repository with an unknown release: got the error %v", err)
	}
}

// TestValidateSubmission checks that opm sees the catalog of each repository with the bundle of
// this release.
func TestValidateSubmission(t *testing.T) {
	p := realRelease(t)
	files(t, map[string]string{"tools/opm": "#!/bin/sh\n[ \"$1\" != validate ] || echo \"$2\" $(ls \"$2\") >> validated\necho rendered\n"})
	do(t, "submission")
	list := " catalog.yaml v" + p.version + ".yaml\n"
	want(t, map[string]string{
		"validated": "dist/submission/community-operators" + list + "dist/submission/community-operators-prod" + list,
		"dist/submission/community-operators/catalog.yaml": "rendered\n",
	})
}

// readSubmitted reads the template and release-config.yaml of a submission.
func readSubmitted(t *testing.T, files map[string]string, root, name, version string) (template submittedTemplate, release releaseSchema) {
	t.Helper()
	must(t, yaml.Unmarshal([]byte(files[root+"catalog-templates/"+name]), &template))
	must(t, yaml.UnmarshalStrict([]byte(files[root+version+"/release-config.yaml"]), &release))
	if template.Schema != "olm.template.basic" || len(template.Entries) < 2 || template.Entries[0].DefaultChannel != communityChannel {
		t.Fatalf("the template is %+v", template)
	}
	return template, release
}

// entryOf returns the entry of a release in the only channel of a template.
func entryOf(t *testing.T, template submittedTemplate, version string) channelEntry {
	t.Helper()
	var channels []string
	var out channelEntry
	for _, blob := range template.Entries {
		if blob.Schema != "olm.channel" {
			continue
		}
		channels = append(channels, blob.Package+" "+blob.Name)
		for _, entry := range blob.Entries {
			if entry.Name == operatorName+".v"+version {
				out = entry.channelEntry
			}
		}
	}
	if !slices.Equal(channels, []string{"nginx-operator stable"}) || out.Name == "" {
		t.Fatalf("the template has the channels %v, without release %s", channels, version)
	}
	return out
}

// ourEntry returns the entry of a release in the channel stable of our catalog.
func ourEntry(t *testing.T, version string) channelEntry {
	t.Helper()
	text, err := os.ReadFile("catalog/template.yaml")
	must(t, err)
	var ours submittedTemplate
	must(t, yaml.Unmarshal(text, &ours))
	ours.Entries = slices.DeleteFunc(ours.Entries, func(blob submittedBlob) bool {
		return blob.Schema == "olm.channel" && blob.Name != communityChannel
	})
	return entryOf(t, ours, version)
}

// testReleaseConfig requires the pipeline to add exactly the entry that the template already has,
// so that it adds none.
func testReleaseConfig(t *testing.T, release releaseSchema, template string, entry channelEntry) {
	t.Helper()
	if len(release.CatalogTemplates) != 1 {
		t.Fatalf("release-config.yaml is %+v", release)
	}
	config := release.CatalogTemplates[0]
	added := channelEntry{Name: entry.Name, Replaces: config.Replaces, SkipRange: config.SkipRange, Skips: config.Skips}
	inChannel := slices.Equal(config.Channels, []string{communityChannel})
	if diff := cmp.Diff(entry, added); diff != "" || config.TemplateName != template || !inChannel {
		t.Errorf("release-config.yaml has %+v: %s", config, diff)
	}
}
