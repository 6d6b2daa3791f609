package main

import (
	"regexp"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/yaml"
)

// submittedCSV has the fields of a ClusterServiceVersion that the pipeline of community-operators
// reads.
type submittedCSV struct {
	Metadata struct {
		Name        string
		Annotations map[string]string
	}
	Spec struct {
		DisplayName, Description, Version, MinKubeVersion, Replaces string
		Provider                                                    struct{ Name string }
		RelatedImages                                               []relatedImage
	}
}

// submitted returns the files of the submission by their paths.
func submitted(t *testing.T) (p *project, files map[string]string, csv submittedCSV) {
	t.Helper()
	p = realRelease(t)
	made, err := p.submissionFiles("ghcr.io/example/nginx-operator@" + digestOf("operator"))
	must(t, err)
	files = untar(t, made[submissionArchive])
	must(t, yaml.Unmarshal([]byte(files["operators/nginx-operator/"+p.version+"/"+csvFile]), &csv))
	return p, files, csv
}

// TestSubmission checks what a submission adds to the bundle, by the rules of the static checks of
// community-operators. `make validate` runs the pipeline's validators on the bundle itself.
func TestSubmission(t *testing.T) {
	p, files, csv := submitted(t)
	annotations := csv.Metadata.Annotations
	for field, pattern := range map[[2]string]string{
		{"name", csv.Metadata.Name}:                       `^nginx-operator\.v` + regexp.QuoteMeta(p.version) + `$`,
		{"spec.version", csv.Spec.Version}:                `^` + regexp.QuoteMeta(p.version) + `$`,
		{"spec.replaces", csv.Spec.Replaces}:              `^$`, // no release is published there
		{"containerImage", annotations["containerImage"]}: `^([^/]+/)+[^/:]+:.+`,
		{"repository", annotations["repository"]}:         `^https?://.+`,
		{"support", annotations["support"]}:               `(?s)^.{3,}`,
		{"description", annotations["description"]}:       `(?s)^.{10,}`,
		{"spec.displayName", csv.Spec.DisplayName}:        `^.{3,50}$`,
		{"spec.description", csv.Spec.Description}:        `(?s)^.{20,}`,
		{"spec.provider.name", csv.Spec.Provider.Name}:    `^.{3,}`,
	} {
		if !regexp.MustCompile(pattern).MatchString(field[1]) {
			t.Errorf("%s is %q", field[0], field[1])
		}
	}
	if _, err := time.Parse(time.RFC3339, annotations["createdAt"]); err != nil {
		t.Error(err)
	}

	var ci struct {
		UpdateGraph         string
		AddReviewers, Merge bool
		Reviewers           []string
	}
	must(t, yaml.UnmarshalStrict([]byte(files["operators/nginx-operator/ci.yaml"]), &ci))
	if ci.UpdateGraph != "replaces-mode" && ci.UpdateGraph != "semver-mode" {
		t.Errorf("updateGraph is %q", ci.UpdateGraph)
	}
	dir := "operators/nginx-operator/" + p.version
	for name, text := range files {
		var object struct{ Kind string }
		must(t, yaml.Unmarshal([]byte(text), &object))
		if object.Kind == "NetworkPolicy" || object.Kind == "ClusterServiceVersion" && name != dir+"/"+csvFile {
			t.Errorf("the submission has the %s %s", object.Kind, name)
		}
	}
}

// TestOpenShiftVersions checks that each OpenShift version of the range has minKubeVersion. OpenShift
// 4.17 has Kubernetes 1.30.
func TestOpenShiftVersions(t *testing.T) {
	p, files, csv := submitted(t)
	var metadata struct{ Annotations map[string]string }
	must(t, yaml.Unmarshal([]byte(files["operators/nginx-operator/"+p.version+"/metadata/annotations.yaml"]), &metadata))
	first, err := version.ParseGeneric(metadata.Annotations["com.redhat.openshift.versions"])
	must(t, err)
	oldest, err := version.ParseSemantic(csv.Spec.MinKubeVersion)
	must(t, err)
	if first.Major() != 4 || first.Minor()+13 < oldest.Minor() {
		t.Errorf("OpenShift %s does not have Kubernetes %s", first, oldest)
	}
}

// TestSubmissionImages checks that the submission has the images of this project by digest only, and
// lists the operator in relatedImages.
func TestSubmissionImages(t *testing.T) {
	_, files, csv := submitted(t)
	operator := "ghcr.io/example/nginx-operator@" + digestOf("operator")
	if !slices.Contains(csv.Spec.RelatedImages, relatedImage{Name: operatorName, Image: operator}) {
		t.Errorf("relatedImages is %v", csv.Spec.RelatedImages)
	}
	if image := csv.Metadata.Annotations["containerImage"]; image != operator {
		t.Errorf("containerImage is %s", image)
	}
	for name, text := range files {
		if tagged := regexp.MustCompile(`ghcr\.io/example/[a-z-]+:\S*`).FindString(text); tagged != "" {
			t.Errorf("%s has %s, which is no digest", name, tagged)
		}
	}
}
