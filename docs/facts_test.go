package docs_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/docs"
	"github.com/example/nginx-operator/internal/images"
	"github.com/example/nginx-operator/internal/objectcache"
	"github.com/example/nginx-operator/internal/validation"
)

// jsonNames returns the names of the fields of a structure.
func jsonNames(of reflect.Type) []string {
	var out []string
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		out = append(out, name)
	}
	return out
}

// The reference of the operator's behavior has a row for each field of the status and for each kind
// that it creates.
func TestBehaviourHasEveryFieldAndKind(t *testing.T) {
	page := read(t, "docs/guide/behaviour.md")
	_, status, _ := strings.Cut(page, "\n## Status, conditions and waiting\n")
	table, _, _ := strings.Cut(status, "\n\n|")
	for _, name := range jsonNames(reflect.TypeFor[v1alpha2.NginxOperatorStatus]()) {
		if got := len(regexp.MustCompile("(?m)^\\|[^|]*`"+name+"`[^|]*\\|").FindAllString(table, -1)); got != 1 {
			t.Errorf("%d rows for status.%s", got, name)
		}
	}

	kinds := map[string]bool{}
	for object := range objectcache.CacheOptions().ByObject {
		kinds[reflect.TypeOf(object).Elem().Name()] = true
	}
	for _, notCreated := range []string{"CustomResourceDefinition", "NginxOperator", "Pod", "ReplicaSet"} {
		if !kinds[notCreated] {
			t.Errorf("%s is not watched", notCreated)
		}
		delete(kinds, notCreated)
	}
	_, created, _ := strings.Cut(page, "\n## What is created\n")
	created, _, _ = strings.Cut(created, "\nDefaults of the Pods:")
	rows := map[string]int{}
	for _, row := range regexp.MustCompile("(?m)^\\| (\\w+)( `[A-Za-z-]+`)? \\|").FindAllStringSubmatch(created, -1) {
		rows[row[1]+row[2]]++
		delete(kinds, row[1])
	}
	for row, count := range rows {
		if count > 1 {
			t.Errorf("%d rows for %s", count, row)
		}
	}
	if len(kinds) > 0 {
		t.Errorf("no rows for %v", slices.Sorted(maps.Keys(kinds)))
	}
}

// A shell command quotes a URL with a question mark, because zsh interprets it as a pattern and
// fails.
func TestCommandsQuoteQuestionMarks(t *testing.T) {
	unquoted := regexp.MustCompile("(?m)^.*[^\"'\\s\\w/:.-]?\\bhttps://[^\\s\"'`]*\\?.*$")
	for page, text := range pages(t) {
		var commands []string
		for _, fence := range fencePattern.FindAllStringSubmatch(text, -1) {
			if slices.Contains([]string{"sh", "bash", "console"}, fence[2]) {
				commands = append(commands, strings.Split(fence[3], "\n")...)
			}
		}
		for _, span := range regexp.MustCompile("`(kubectl |curl |crane |oras )[^`\n]*`").FindAllString(text, -1) {
			commands = append(commands, strings.Trim(span, "`"))
		}
		for _, command := range commands {
			bare := regexp.MustCompile(`"[^"]*"|'[^']*'`).ReplaceAllString(command, "")
			if unquoted.MatchString(bare) {
				t.Errorf("%s: quote the URL in %s", page, command)
			}
		}
	}
}

// The pages say that no release is signed exactly if the repository has no public key.
func TestSignedReleases(t *testing.T) {
	_, err := fs.Stat(repository, "cosign.pub")
	for _, page := range []string{"SECURITY.md", "docs/guide/operations/downloads.md", "docs/facts.md"} {
		if unsigned := strings.Contains(read(t, page), "No release is signed yet."); unsigned != (err != nil) {
			t.Errorf("%s says that no release is signed: %t; cosign.pub: %v", page, unsigned, err)
		}
	}
}

// Commands and manifests of the documentation reference images and directories of this release.
func TestVersionsOfCommands(t *testing.T) {
	version := strings.TrimSpace(read(t, "VERSION"))
	named := regexp.MustCompile(`(?:ref=v|releases/download/v|example/nginx-operator[a-z-]*:v|csv/nginx-operator\.v)(\d+\.\d+\.\d+)`)
	files := map[string]string{}
	for name, text := range pages(t) {
		if name == "README.md" || name == "docs/install.md" || strings.HasPrefix(name, "docs/guide/") {
			files[name] = text
		}
	}
	err := fs.WalkDir(repository, "config", func(name string, _ fs.DirEntry, err error) error {
		if err == nil && path.Base(name) == "kustomization.yaml" {
			files[name] = read(t, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for name, text := range files {
		for _, match := range named.FindAllStringSubmatch(text, -1) {
			if found++; match[1] != version {
				t.Errorf("%s: %s, this is %s", name, match[0], version)
			}
		}
	}
	if found < 10 {
		t.Errorf("%d commands name a release", found)
	}
}

// Subscriptions and other manifests of the documentation follow the default channel.
func TestChannelOfManifests(t *testing.T) {
	channel := regexp.MustCompile(`(?m)^\s*(?:channel: (\S+)|channels: \[(\S+)\]|- name: (alpha|candidate|stable))$`)
	texts := pages(t)
	texts["config/olm-v1/extension.yaml"] = read(t, "config/olm-v1/extension.yaml")
	found := 0
	for name, text := range texts {
		for _, match := range channel.FindAllStringSubmatch(text, -1) {
			if found++; match[1]+match[2]+match[3] != "stable" {
				t.Errorf("%s: %s", name, strings.TrimSpace(match[0]))
			}
		}
	}
	if found < 4 {
		t.Errorf("%d manifests name a channel", found)
	}
}

// Each mirror object has every image repository that an installation pulls.
func TestMirrorsHaveEveryRepository(t *testing.T) {
	page := read(t, "docs/guide/air-gapped.md")
	images := regexp.MustCompile("(?m)^\\| `([^`]+)/[^`/]+` \\|").FindAllStringSubmatch(page, -1)
	if len(images) < 5 {
		t.Fatalf("the table has %d images", len(images))
	}
	for _, kind := range []string{"ImageDigestMirrorSet", "ImageTagMirrorSet"} {
		_, manifest, _ := strings.Cut(page, "\nkind: "+kind+"\n")
		manifest, _, _ = strings.Cut(manifest, "```")
		manifest, _, _ = strings.Cut(manifest, "\n---\n")
		for _, image := range images {
			if !strings.Contains(manifest, "- source: "+image[1]+"\n") {
				t.Errorf("%s has no source %s", kind, image[1])
			}
		}
	}
}

// krew's manifest references the archives that the release procedure publishes.
func TestPluginIsPublished(t *testing.T) {
	manifest := read(t, "cmd/kubectl-nginx/krew.yaml")
	_, procedure, _ := strings.Cut(read(t, "docs/development/release.md"), "\n## A release\n")
	procedure, _, _ = strings.Cut(procedure, "\n## ")
	for _, words := range []string{
		"`make release ", "`kubectl-nginx_OS_ARCH.tar.gz`", "`krew.yaml`", "`dist/release`", "`vX.Y.Z`",
	} {
		if !strings.Contains(procedure, words) {
			t.Errorf("the release procedure does not say %s", words)
		}
	}
	const url = "https://github.com/example/nginx-operator/releases/download/v@VERSION@/"
	platform := regexp.MustCompile(`(?s)os: (\w+)\s+arch: (\w+)\s+uri: (\S+)\s+sha256: "@(\w+)@"`)
	platforms := platform.FindAllStringSubmatch(manifest, -1)
	if len(platforms) != strings.Count(manifest, "uri:") || len(platforms) < 6 {
		t.Errorf("%d platforms", len(platforms))
	}
	for _, one := range platforms {
		name, suffix := one[1]+"_"+one[2], ".tar.gz"
		if one[1] == "windows" {
			suffix = ".zip"
		}
		if one[3] != url+"kubectl-nginx_"+name+suffix || one[4] != name {
			t.Errorf("%s: uri %s, checksum %s", name, one[3], one[4])
		}
	}
}

// Each release has a date, the newest first.
func TestChangelogHasDates(t *testing.T) {
	headings := regexp.MustCompile(`(?m)^## (.*)$`).FindAllStringSubmatch(read(t, "CHANGELOG.md"), -1)
	last := "9999-12-31"
	for _, heading := range headings {
		parts := regexp.MustCompile(`^\d+\.\d+\.\d+ - (\d{4}-\d{2}-\d{2})$`).FindStringSubmatch(heading[1])
		if parts == nil || parts[1] > last {
			t.Errorf("heading %q, the release above it is of %s", heading[1], last)
			continue
		}
		last = parts[1]
	}
	if len(headings) < 6 {
		t.Errorf("%d releases", len(headings))
	}
}

// references are the fields of an NginxOperator that reference an object, with its kind. Each is a suffix
// of a path.
var references = map[string]string{
	"secretName": "Secret", "claimName": "PersistentVolumeClaim", "priorityClassName": "PriorityClass", "driver": "CSIDriver",
	"serviceAccountName": "ServiceAccount", "imagePullSecrets.name": "Secret", "secretRef.name": "Secret", "secretKeyRef.name": "Secret",
	"nodePublishSecretRef.name": "Secret", "secret.name": "Secret", "configMapRef.name": "ConfigMap", "configMapKeyRef.name": "ConfigMap",
	"configMap.name": "ConfigMap", "parentRefs.name": "Gateway", "ingress.className": "IngressClass",
	"loadBalancerClass": "load balancer class",
}

// referenced adds the objects that a part of a manifest requires, as "Kind `name`".
func referenced(at string, value any, into map[string]bool) {
	switch value := value.(type) {
	case map[string]any:
		if value["optional"] == true {
			return
		}
		for key, inner := range value {
			referenced(at+"."+key, inner, into)
		}
	case []any:
		for _, inner := range value {
			referenced(at, inner, into)
		}
	case string:
		for suffix, kind := range references {
			if strings.HasSuffix(at, "."+suffix) {
				into[kind+" `"+value+"`"] = true
			}
		}
	}
}

// fieldsPage returns the pages on the fields of the spec as one page.
func fieldsPage(t *testing.T) string {
	t.Helper()
	guide, err := fs.Sub(repository, "docs/guide")
	if err != nil {
		t.Fatal(err)
	}
	page, err := docs.Fields(guide)
	if err != nil {
		t.Fatal(err)
	}
	return page
}

// The index of the fields links to the section of each field, and has the anchor of the page before the fields were split by topic.
func TestIndexOfFields(t *testing.T) {
	index := read(t, "docs/guide/fields.md")
	for _, name := range jsonNames(reflect.TypeFor[v1alpha2.NginxOperatorSpec]()) {
		anchor := strings.ToLower(name)
		row := regexp.MustCompile(fmt.Sprintf(`(?m)^\| <a id="%s"></a>\[%s\]\(fields/[a-z-]+\.md#%s\) \|`, anchor, name, anchor))
		if !row.MatchString(index) {
			t.Errorf("docs/guide/fields.md has no row that matches %s", row)
		}
	}
}

// The index of the fields lists each object that an example needs and does not create itself, and no other.
func TestObjectsThatExamplesNeed(t *testing.T) {
	page := fieldsPage(t)
	_, list, _ := strings.Cut(page, "\n## Objects that the examples need\n")
	list, _, _ = strings.Cut(list, "\n## ")
	needed := map[string]bool{}
	for _, example := range docs.Examples(page) {
		named, created := map[string]bool{}, map[string]bool{}
		for _, document := range example.Documents {
			var object map[string]any
			if err := yaml.Unmarshal([]byte(document), &object); err != nil {
				t.Fatal(err)
			}
			raw, err := json.Marshal(object["metadata"])
			var metadata struct{ Name string }
			if err != nil || json.NewDecoder(bytes.NewReader(raw)).Decode(&metadata) != nil {
				t.Fatal(err)
			}
			created[fmt.Sprintf("%s `%s`", object["kind"], metadata.Name)] = true
			if object["kind"] == "NginxOperator" {
				referenced("", object["spec"], named)
			}
		}
		for one := range named {
			if !created[one] {
				needed[example.Section+": "+one] = true
			}
		}
	}
	listed := map[string]bool{}
	for _, row := range regexp.MustCompile(`(?m)^\| \[([^]]+)\]\([^)]*\) \| (.*) \|$`).FindAllStringSubmatch(list, -1) {
		for _, one := range strings.Split(row[2], ", ") {
			listed[row[1]+": "+one] = true
		}
	}
	if !maps.Equal(needed, listed) {
		t.Errorf("needed\n%s\nlisted\n%s",
			strings.Join(slices.Sorted(maps.Keys(needed)), "\n"), strings.Join(slices.Sorted(maps.Keys(listed)), "\n"))
	}
}

// Each example can start: no image runs as root, and no patch uses a volume name that a field reserves.
func TestExamplesCanStart(t *testing.T) {
	for _, example := range docs.Examples(fieldsPage(t)) {
		for _, document := range example.Documents {
			object := &v1alpha2.NginxOperator{}
			if yaml.Unmarshal([]byte(document), object) != nil || object.Kind != "NginxOperator" {
				continue
			}
			for _, warning := range validation.Warnings(&object.Spec, nil) {
				if strings.Contains(warning, "runs as root") {
					t.Errorf("%s: %s", object.Name, warning)
				}
			}
			for _, patch := range object.Spec.Patches {
				if regexp.MustCompile(`(?m)^ *- name: (cache|config|content|files|tmp)$`).MatchString(patch.Patch) {
					t.Errorf("%s: a patch takes a name that the operator reserves:\n%s", object.Name, patch.Patch)
				}
			}
		}
	}
}

// The page about containers lists the images that admission knows to run as root.
func TestImagesThatRunAsRoot(t *testing.T) {
	text := strings.Join(strings.Fields(read(t, "docs/guide/fields/containers.md")), " ")
	_, list, _ := strings.Cut(text, "Admission warns about ")
	list, _, _ = strings.Cut(list, ". ")
	var listed []string
	for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(list, -1) {
		repository, _ := images.Parse(name[1])
		listed = append(listed, repository)
	}
	if want := slices.Sorted(slices.Values(images.Root)); !slices.Equal(slices.Sorted(slices.Values(listed)), want) {
		t.Errorf("the page lists %v, want %v", listed, want)
	}
}
