package main

import (
	"encoding/base64"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/yaml"
)

// bundleCSV has the fields of a ClusterServiceVersion that the checks of community-operators read.
type bundleCSV struct {
	Metadata struct {
		Name        string
		Annotations map[string]string
	}
	Spec struct {
		DisplayName, Description, Version, MinKubeVersion, Replaces string
		Icon                                                        []struct{ Base64data, Mediatype string }
		Maintainers                                                 []struct{ Name, Email string }
		Provider                                                    struct{ Name string }
		Links                                                       []struct{ Name, URL string }
		Keywords                                                    []string
		RelatedImages                                               []relatedImage
	}
}

// pull is a pull request to community-operators: the files by their path, and parsed parts of them.
type pull struct {
	files       map[string]string
	dir         string
	csv         bundleCSV
	annotations map[string]string
	ci          map[string]any
}

// openPull unpacks the archive of the release, and parses it.
func openPull(t *testing.T) pull {
	t.Helper()
	p := realRelease(t)
	made, err := p.submissionFiles("ghcr.io/example/nginx-operator@" + digestOf("operator"))
	if err != nil {
		t.Fatal(err)
	}
	out := pull{files: untar(t, made[submissionArchive]), dir: "operators/nginx-operator/" + p.version}
	out.parse(t)
	return out
}

func (p *pull) parse(t *testing.T) {
	t.Helper()
	var metadata struct{ Annotations map[string]string }
	for file, into := range map[string]any{
		p.dir + "/" + csvFile: &p.csv, p.dir + "/metadata/annotations.yaml": &metadata, "operators/nginx-operator/ci.yaml": &p.ci,
	} {
		if err := yaml.Unmarshal([]byte(p.files[file]), into); err != nil || p.files[file] == "" {
			t.Fatalf("%s: %q, %v", file, p.files[file], err)
		}
	}
	p.annotations = metadata.Annotations
}

// anotherBundle adds a second bundle to a submission.
func anotherBundle(p *pull) { p.files["operators/nginx-operator/0.0.1/"+csvFile] = "" }

// releaseConfig adds a file that only submissions with a file-based catalog have.
func releaseConfig(p *pull) { p.files[p.dir+"/release-config.yaml"] = "" }

// staticChecks are the checks of operator-pipelines for a first submission, by their names, each
// with a defect that it must find. A warning of the pipeline is a finding too. docs/development.md
// lists the other checks.
var staticChecks = map[string]struct {
	check func(pull) []string
	spoil func(*pull)
}{
	"check_required_fields":                 {checkRequiredFields, func(p *pull) { p.csv.Metadata.Annotations["categories"] = "Web" }},
	"check_api_version_constraints":         {checkVersionConstraints, func(p *pull) { p.csv.Spec.MinKubeVersion = "1.99.0" }},
	"check_operator_name":                   {checkOperatorName, func(p *pull) { p.csv.Metadata.Name = "nginx.v" + p.csv.Spec.Version }},
	"check_operator_version_directory_name": {checkVersionDirectory, func(p *pull) { p.csv.Spec.Version = "0.0.1" }},
	"check_replaces_availability":           {checkReplaces, func(p *pull) { p.csv.Spec.Replaces = "nginx-operator.v0.0.1" }},
	"check_upgrade_graph_loop":              {checkReplaces, func(p *pull) { p.csv.Spec.Replaces = p.csv.Metadata.Name }},
	"check_network_policy_presence": {checkNetworkPolicy, func(p *pull) {
		p.files[p.dir+"/manifests/a.yaml"] = "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\n"
	}},
	"check_ci_upgrade_graph":                      {checkUpgradeGraph, func(p *pull) { delete(p.ci, "updateGraph") }},
	"check_schema_operator_ci_config":             {checkCISchema, func(p *pull) { p.ci["reviewers"] = []any{} }},
	"check_operator_name_unique":                  {checkOneBundle, anotherBundle},
	"check_dangling_bundles":                      {checkOneBundle, anotherBundle},
	"check_catalog_usage_ci_config":               {checkNoCatalogs, func(p *pull) { p.ci["fbc"] = map[string]any{} }},
	"check_validate_schema_bundle_release_config": {checkNoReleaseConfig, releaseConfig},
	"check_bundle_release_config":                 {checkNoReleaseConfig, releaseConfig},
}

// TestStaticChecks runs the static checks of community-operators on the submission, and requires no
// failure and no warning. Each check has to find a defect.
func TestStaticChecks(t *testing.T) {
	submitted := openPull(t)
	for name, one := range staticChecks {
		t.Run(name, func(t *testing.T) {
			for _, finding := range one.check(submitted) {
				t.Error(finding)
			}
			spoiled := pull{files: maps.Clone(submitted.files), dir: submitted.dir}
			spoiled.parse(t)
			one.spoil(&spoiled)
			if len(one.check(spoiled)) == 0 {
				t.Error("a defect is not found")
			}
		})
	}
}

// TestSubmissionImages checks that the submission has the images of this project by digest only, and
// lists the operator in relatedImages.
func TestSubmissionImages(t *testing.T) {
	submitted := openPull(t)
	operator := "ghcr.io/example/nginx-operator@" + digestOf("operator")
	if !slices.Contains(submitted.csv.Spec.RelatedImages, relatedImage{Name: operatorName, Image: operator}) {
		t.Errorf("relatedImages is %v", submitted.csv.Spec.RelatedImages)
	}
	if image := submitted.csv.Metadata.Annotations["containerImage"]; image != operator {
		t.Errorf("containerImage is %s", image)
	}
	for name, text := range submitted.files {
		if tagged := regexp.MustCompile(`ghcr\.io/example/[a-z-]+:\S*`).FindString(text); tagged != "" {
			t.Errorf("%s has %s, which is no digest", name, tagged)
		}
	}
}

var (
	capabilities = []string{"Basic Install", "Seamless Upgrades", "Full Lifecycle", "Deep Insights", "Auto Pilot"}
	categories   = []string{
		"AI/Machine Learning", "Application Runtime", "Big Data", "Cloud Provider", "Developer Tools", "Database", "Drivers and plugins",
		"Integration & Delivery", "Logging & Tracing", "Modernization & Migration", "Monitoring", "Networking", "OpenShift Optional", "Security",
		"Storage", "Streaming & Messaging",
	}
	iconTypes = []string{"image/png", "image/jpeg", "image/gif", "image/svg+xml"}
)

func checkRequiredFields(p pull) (found []string) {
	spec, annotations := p.csv.Spec, p.csv.Metadata.Annotations
	for field, pattern := range map[[2]string]string{
		{"containerImage", annotations["containerImage"]}: `^([^/]+/)+[^/:]+:.+`,
		{"repository", annotations["repository"]}:         `^https?://.+`,
		{"support", annotations["support"]}:               `(?s)^.{3,}`,
		{"description", annotations["description"]}:       `(?s)^.{10,}`,
		{"spec.displayName", spec.DisplayName}:            `^.{3,50}$`,
		{"spec.description", spec.Description}:            `(?s)^.{20,}`,
		{"spec.provider.name", spec.Provider.Name}:        `^.{3,}`,
	} {
		if !regexp.MustCompile(pattern).MatchString(field[1]) {
			found = append(found, field[0]+" is "+strconv.Quote(field[1]))
		}
	}
	if !slices.Contains(capabilities, annotations["capabilities"]) {
		found = append(found, "capabilities is "+annotations["capabilities"])
	}
	for category := range strings.SplitSeq(annotations["categories"], ",") {
		if !slices.Contains(categories, strings.TrimSpace(category)) {
			found = append(found, "unknown category "+category)
		}
	}
	if _, err := time.Parse(time.RFC3339, annotations["createdAt"]); err != nil {
		found = append(found, "createdAt: "+err.Error())
	}
	if _, err := version.ParseSemantic(spec.Version); err != nil {
		found = append(found, "spec.version: "+err.Error())
	}
	if len(spec.Maintainers) == 0 || len(spec.Links) == 0 || len(spec.Keywords) == 0 || len(spec.Icon) == 0 {
		found = append(found, "maintainers, links, keywords, or icon is empty")
	}
	for _, icon := range spec.Icon {
		data, err := base64.StdEncoding.DecodeString(icon.Base64data)
		if err != nil || len(data) < 3 || !slices.Contains(iconTypes, icon.Mediatype) {
			found = append(found, "wrong icon of type "+icon.Mediatype)
		}
	}
	return found
}

// checkVersionConstraints requires each OpenShift version of the range to have minKubeVersion.
func checkVersionConstraints(p pull) []string {
	const annotation = "com.redhat.openshift.versions"
	from, err := version.ParseGeneric(strings.TrimPrefix(p.annotations[annotation], "v"))
	oldest, minErr := version.ParseSemantic(p.csv.Spec.MinKubeVersion)
	if err != nil || minErr != nil || from.Major() != 4 {
		return []string{annotation + " is " + p.annotations[annotation] + ", minKubeVersion " + p.csv.Spec.MinKubeVersion}
	}
	// OpenShift 4.17 has Kubernetes 1.30.
	if from.Minor()+13 < oldest.Minor() {
		return []string{"OpenShift " + from.String() + " conflicts with minKubeVersion " + oldest.String()}
	}
	return nil
}

func checkOperatorName(p pull) []string {
	name, _, _ := strings.Cut(p.csv.Metadata.Name, ".v")
	metadata := p.annotations["operators.operatorframework.io.bundle.package.v1"]
	if directory := path.Base(path.Dir(p.dir)); name != directory || metadata != directory {
		return []string{"the names are " + name + ", " + metadata + ", and " + directory}
	}
	return nil
}

func checkVersionDirectory(p pull) []string {
	if directory := path.Base(p.dir); p.csv.Spec.Version != directory || !strings.HasSuffix(p.csv.Metadata.Name, ".v"+directory) {
		return []string{p.csv.Metadata.Name + " of version " + p.csv.Spec.Version + " is in " + directory}
	}
	return nil
}

// checkReplaces refuses any predecessor, because none is published there.
func checkReplaces(p pull) []string {
	if p.csv.Spec.Replaces != "" {
		return []string{"it replaces " + p.csv.Spec.Replaces}
	}
	return nil
}

func checkNetworkPolicy(p pull) (found []string) {
	for name, text := range p.files {
		var object struct{ APIVersion, Kind string }
		if err := yaml.Unmarshal([]byte(text), &object); err != nil {
			found = append(found, name+": "+err.Error())
		}
		inBundle := strings.HasPrefix(name, p.dir+"/manifests/")
		if inBundle && object.Kind == "NetworkPolicy" && strings.HasPrefix(object.APIVersion, "networking.k8s.io/") {
			found = append(found, name+" is a NetworkPolicy")
		}
	}
	return found
}

func checkUpgradeGraph(p pull) []string {
	if graph := p.ci["updateGraph"]; graph != "replaces-mode" && graph != "semver-mode" {
		return []string{"updateGraph is missing or unknown"}
	}
	return nil
}

// checkCISchema checks the fields of ci-schema.json that ci.yaml has.
func checkCISchema(p pull) (found []string) {
	for key, value := range p.ci {
		switch value := value.(type) {
		case string:
			if key != "updateGraph" {
				found = append(found, key+" is a string")
			}
		case bool:
			if key != "addReviewers" && key != "merge" {
				found = append(found, key+" is a boolean")
			}
		case []any:
			_, isText := slices.Concat(value, []any{nil})[0].(string)
			if key != "reviewers" || !isText {
				found = append(found, key+" is no list of names")
			}
		default:
			found = append(found, key+" is unknown")
		}
	}
	return found
}

// checkOneBundle requires the submission to be the only bundle, so that no bundle has another name
// and none dangles.
func checkOneBundle(p pull) (found []string) {
	for name := range p.files {
		if strings.HasSuffix(name, ".clusterserviceversion.yaml") && name != p.dir+"/"+csvFile {
			found = append(found, "another bundle: "+name)
		}
	}
	return found
}

func checkNoCatalogs(p pull) []string {
	if p.ci["fbc"] != nil {
		return []string{"ci.yaml has catalogs"}
	}
	return nil
}

func checkNoReleaseConfig(p pull) []string {
	if _, has := p.files[p.dir+"/release-config.yaml"]; has {
		return []string{"the bundle has a release-config.yaml without file-based catalogs"}
	}
	return nil
}
