package docs_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/docs"
)

func TestTryIt(t *testing.T) {
	readme := "# Title\n\n```sh\nno step\n```\n\n## Try it\n\nText:\n\n```sh\nfirst\nsecond\n```\n\n" +
		"It answers:\n\n```text\nHello\n```\n\n## Next\n\n```sh\nother\n```\n"
	script, answer, err := docs.TryIt(readme)
	if err != nil || script != "first\nsecond\n" || answer != "Hello\n" {
		t.Errorf("got %q, %q, %v", script, answer, err)
	}
	for name, text := range map[string]string{
		"no section":  "## Other\n",
		"no answer":   "## Try it\n```sh\nfirst\n```\n",
		"two scripts": "## Try it\n```sh\nfirst\n```\n```sh\nsecond\n```\n```text\nHello\n```\n",
	} {
		if _, _, err := docs.TryIt(text); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// The README is one page, and its section is three commands: install from the files of this
// release, apply an object, and request a page. No command needs a clone. The object is valid, and
// the page that the section shows is the object's own text.
func TestTryItOfTheReadme(t *testing.T) {
	readme := read(t, "README.md")
	if words := len(strings.Fields(readme)); words > 700 {
		t.Errorf("the README has %d words, want at most 700", words)
	}
	script, answer, err := docs.TryIt(readme)
	if err != nil {
		t.Fatal(err)
	}
	commands := strings.Split(strings.TrimSpace(script), "\n\n")
	if len(commands) != 3 {
		t.Fatalf("%d commands between blank lines, want 3:\n%s", len(commands), script)
	}
	version := strings.TrimSpace(read(t, "VERSION"))
	install := "kubectl apply --server-side -f https://github.com/example/nginx-operator/releases/download/v" + version + "/install.yaml"
	if commands[0] != install {
		t.Errorf("the first command is %q, want %q", commands[0], install)
	}
	object := regexp.MustCompile(`(?ms)<<'EOF'\n(.*?)^EOF$`).FindStringSubmatch(commands[1])
	if object == nil {
		t.Fatalf("the second command declares no object:\n%s", commands[1])
	}
	if err := valid([]byte(object[1])); err != nil {
		t.Error(err)
	}
	if !strings.Contains(object[1], strings.TrimSuffix(answer, "\n")) {
		t.Errorf("the answer %q is not in the object", answer)
	}
	if lines := strings.Count(object[1], "\n"); lines > 12 {
		t.Errorf("the object has %d lines", lines)
	}
	if local := regexp.MustCompile(`-[fk] [^-h]\S*`).FindString(script); local != "" {
		t.Errorf("%q needs a clone", local)
	}
}

// The README starts with the two commands that work without a published release. The second one is
// what CI runs, and `make nightly` runs the first one (hack/first-command).
func TestFromAClone(t *testing.T) {
	readme := read(t, "README.md")
	script, err := docs.Section(readme, "From a clone")
	if err != nil {
		t.Fatal(err)
	}
	ci := regexp.MustCompile(`(?m)^(?:CI=true )?exec (make .+)$`).FindStringSubmatch(read(t, ".ci/run"))
	if ci == nil {
		t.Fatal(".ci/run does not end with a call of make")
	}
	commands := []string{"make demo", ci[1]}
	if diff := cmp.Diff(commands, strings.Split(strings.TrimSpace(script), "\n")); diff != "" {
		t.Error(diff)
	}

	before, section, _ := strings.Cut(readme, "\n## From a clone\n")
	section, _, _ = strings.Cut(section, "\n## ")
	if strings.Contains(before, "\n## ") {
		t.Error("another section comes first, which may need a published release")
	}
	if !strings.Contains(section, "`example`") || !strings.Contains(section, "placeholders") {
		t.Error("the section does not say that the organization and its URLs are placeholders")
	}
	for _, row := range []string{
		"| | `" + commands[0] + "` | `" + commands[1] + "` |",
		"| needs |", "| first time, on two cores |", "| again |", "| disk |", "| stop |",
	} {
		if !strings.Contains(section, "\n"+row) {
			t.Errorf("the section has no row %q", row)
		}
	}
}

func TestRequests(t *testing.T) {
	got, err := docs.Requests(`# Title
#
# $ curl -i -H 'Accept-Encoding: gzip' -u me:secret http://web:8080/a?b=c # a few times
# 200 Content-Encoding: gzip
#
# $ curl -k https://web/
# 404
kind: X
`)
	if err != nil {
		t.Fatal(err)
	}
	want := []docs.Request{
		{
			URL:    &url.URL{Scheme: "http", Host: "web:8080", Path: "/a", RawQuery: "b=c"},
			Header: http.Header{"Accept-Encoding": {"gzip"}}, User: url.UserPassword("me", "secret"),
			Status: 200, Text: "Content-Encoding: gzip",
		},
		{URL: &url.URL{Scheme: "https", Host: "web", Path: "/"}, Header: http.Header{}, Status: 404},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(url.Userinfo{})); diff != "" {
		t.Error(diff)
	}
	for i, want := range []int32{8080, 443} {
		if port, err := got[i].Port(); err != nil || port != want {
			t.Errorf("port %d, %v, want %d", port, err, want)
		}
	}
	for name, text := range map[string]string{
		"none":        "# Title\n",
		"no answer":   "# $ curl http://web/\n#\n",
		"not curl":    "# $ wget http://web/\n# 200\n",
		"unknown":     "# $ curl --next http://web/\n# 200\n",
		"no address":  "# $ curl -i\n# 200\n",
		"one is good": "# $ curl http://web/\n# 200\n# $ curl http://web/\n",
	} {
		if _, err := docs.Requests(text); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// A comment in a manifest is no heading, and a manifest of something else no example.
func TestExamplesOfAPage(t *testing.T) {
	const operand = "# A comment\n## Another\nkind: NginxOperator\n"
	page := "# Title\n\n## replicas\n\n```yaml\nkind: ConfigMap\n---\n" + operand + "```\n\n```yaml\nkind: Pod\n```\n\n" +
		"## image\n\n```sh\nkind: NginxOperator\n```\n\n```yaml\n" + operand + "```\n"
	want := []docs.Example{
		{Section: "replicas", Documents: []string{"kind: ConfigMap\n", operand}}, {Section: "image", Documents: []string{operand}},
	}
	if diff := cmp.Diff(want, docs.Examples(page)); diff != "" {
		t.Error(diff)
	}
}

// A request is right about its answer only where status and text agree.
func TestCheck(t *testing.T) {
	request := docs.Request{URL: &url.URL{Scheme: "http", Host: "web"}, Status: 200, Text: "X-Cache: HIT"}
	header := func(value string) http.Header { return http.Header{"X-Cache": {value}} }
	for name, test := range map[string]struct {
		status int
		header http.Header
		body   string
		right  bool
	}{
		"in a header":    {200, header("HIT"), "", true},
		"in the body":    {200, nil, "says X-Cache: HIT.", true},
		"other text":     {200, header("MISS"), "", false},
		"another status": {404, header("HIT"), "", false},
	} {
		if err := request.Check(&http.Response{StatusCode: test.status, Header: test.header}, test.body); (err == nil) != test.right {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The recipes: each says when to use it, names a request to an object of its own, is valid, and is
// in the gallery.
func TestSamples(t *testing.T) {
	gallery := read(t, "docs/guide/gallery.md")
	files, err := fs.Glob(repository, "config/samples/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	recipes := 0
	for _, file := range files {
		if path.Base(file) == "kustomization.yaml" {
			continue
		}
		text := read(t, file)
		if !strings.Contains(gallery, "(../../"+file+")") {
			t.Errorf("the gallery does not link to %s", file)
		}
		names := map[string]bool{}
		for _, document := range regexp.MustCompile(`(?m)^---$`).Split(text, -1) {
			if found := regexp.MustCompile(`(?m)^kind: NginxOperator\nmetadata:\n  name: (\S+)$`).FindStringSubmatch(document); found != nil {
				names[found[1]] = true
				if err := valid([]byte(document)); err != nil {
					t.Errorf("%s: %v", file, err)
				}
			}
		}
		if strings.HasPrefix(path.Base(file), "operator_") {
			continue
		}
		recipes++
		if !regexp.MustCompile(`^# [^\n]+\. Use it `).MatchString(strings.ReplaceAll(text, "\n# ", " ")) {
			t.Errorf("%s does not begin with what it is and when to use it", file)
		}
		requests, err := docs.Requests(text)
		if err != nil {
			t.Errorf("%s: %v", file, err)
		}
		for _, request := range requests {
			if !names[request.URL.Hostname()] {
				t.Errorf("%s asks %s, which it does not declare", file, request.URL)
			}
		}
	}
	if recipes < 15 {
		t.Errorf("there are %d recipes", recipes)
	}
}

// The bundle shows the basic examples and no recipe, the newest version first.
func TestBundledSamples(t *testing.T) {
	csv := &metav1.PartialObjectMetadata{}
	if err := yaml.Unmarshal([]byte(read(t, "bundle/manifests/nginx-operator.clusterserviceversion.yaml")), csv); err != nil {
		t.Fatal(err)
	}
	var objects []metav1.PartialObjectMetadata
	if err := json.Unmarshal([]byte(csv.Annotations["alm-examples"]), &objects); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, object := range objects {
		got = append(got, object.APIVersion+" "+object.Name)
	}
	if diff := cmp.Diff([]string{v1alpha2.GroupVersion.String() + " greeter", v1alpha1.GroupVersion.String() + " instance"}, got); diff != "" {
		t.Error(diff)
	}
}

// The page on GitOps names every field that the schema defaults inside a list, for such a field
// shows in a client-side diff.
func TestGitOpsNamesDefaultsInsideLists(t *testing.T) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal([]byte(read(t, "config/crd/bases/operator.example.com_nginxoperators.yaml")), crd); err != nil {
		t.Fatal(err)
	}
	page := read(t, "docs/guide/gitops.md")
	found := 0
	for _, version := range crd.Spec.Versions {
		spec := version.Schema.OpenAPIV3Schema.Properties["spec"]
		for _, field := range defaultsInLists("", &spec, false) {
			found++
			if !strings.Contains(page, "`"+field+"`") {
				t.Errorf("gitops.md does not name %s of %s, which is defaulted inside a list", field, version.Name)
			}
		}
	}
	if found == 0 {
		t.Error("found no default inside a list; ports[].protocol has one")
	}
}

func defaultsInLists(at string, schema *apiextensionsv1.JSONSchemaProps, inList bool) []string {
	var out []string
	// An empty default stands for a key of a list, which nobody leaves out.
	if schema.Default != nil && inList && string(schema.Default.Raw) != `""` {
		out = append(out, strings.TrimPrefix(at, "."))
	}
	for name, property := range schema.Properties {
		out = append(out, defaultsInLists(at+"."+name, &property, inList)...)
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		out = append(out, defaultsInLists(at+"[]", schema.Items.Schema, true)...)
	}
	return out
}

// The support matrix has the versions that the tests run.
func TestSupportMatrix(t *testing.T) {
	page := read(t, "docs/support.md")
	for module, world := range map[string]string{
		"k8s.io/kubernetes":                                        "kubernetes",
		"github.com/containerd/containerd/v2":                      "containerd",
		"github.com/operator-framework/operator-lifecycle-manager": "olm",
		"github.com/operator-framework/operator-sdk":               "operator-sdk",
		"github.com/prometheus/prometheus":                         "prometheus",
	} {
		requirement := regexp.MustCompile(`(?m)^\s*(?:require )?` + regexp.QuoteMeta(module) + ` v(\S+)`)
		found := requirement.FindStringSubmatch(read(t, "hack/tools/"+world+"/go.mod"))
		if found == nil {
			t.Errorf("hack/tools/%s does not require %s", world, module)
			continue
		}
		if !regexp.MustCompile(`\bv?` + regexp.QuoteMeta(found[1]) + `\b`).MatchString(page) {
			t.Errorf("support.md does not have version %s of %s", found[1], module)
		}
	}
	pinned := regexp.MustCompile(`nginx-unprivileged:(\S+)`).FindStringSubmatch(read(t, "config/manager/manager.yaml"))
	if pinned == nil || !strings.Contains(page, pinned[0]) || !strings.Contains(read(t, "SECURITY.md"), pinned[1]+" in this release") {
		t.Errorf("support.md and SECURITY.md do not both have the default image, %v", pinned)
	}
	suites := regexp.MustCompile(`bin/cluster nginx ([a-z ]+)\)`).FindStringSubmatch(read(t, "Makefile"))
	if suites == nil {
		t.Fatal("the Makefile names no suites of Debian")
	}
	for _, suite := range strings.Fields(suites[1]) {
		if !strings.Contains(page, suite) || !strings.Contains(read(t, "test/e2e/nginxversions_test.go"), `"`+suite+`": `) {
			t.Errorf("support.md and the tests do not both have Debian's %s", suite)
		}
	}
	if minimum := minKubeVersion(t); !strings.Contains(page, fmt.Sprintf("%d.%d and later", minimum.Major(), minimum.Minor())) {
		t.Errorf("support.md does not have the oldest Kubernetes, %s", minimum)
	}
}

// minKubeVersion returns the oldest Kubernetes that the ClusterServiceVersion declares.
func minKubeVersion(t *testing.T) *version.Version {
	t.Helper()
	found := regexp.MustCompile(`(?m)^  minKubeVersion: (\S+)`).
		FindStringSubmatch(read(t, "config/manifests/bases/nginx-operator.clusterserviceversion.yaml"))
	if found == nil {
		t.Fatal("the ClusterServiceVersion has no minKubeVersion")
	}
	return version.MustParseGeneric(found[1])
}

// minKubeVersion is the version of hack/tools/kubernetes-oldest, with which `make nightly` runs the
// integration tests.
func TestOldestKubernetesIsTested(t *testing.T) {
	minimum := minKubeVersion(t)
	pinned := regexp.MustCompile(`(?m)^\tk8s\.io/kubernetes v(\S+)`).FindStringSubmatch(read(t, "hack/tools/kubernetes-oldest/go.mod"))
	if pinned == nil || pinned[1] != minimum.String() {
		t.Errorf("minKubeVersion is %s, and hack/tools/kubernetes-oldest requires Kubernetes %v", minimum, pinned)
	}
}
