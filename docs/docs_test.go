// Package docs_test compares the documentation with the code: required names, links, and examples.
package docs_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/docs"
	"github.com/example/nginx-operator/internal/cached"
	"github.com/example/nginx-operator/internal/options"
	"github.com/example/nginx-operator/internal/validation"
)

// repository is the root of all paths in this file.
var repository = os.DirFS("..")

// pages returns every page of the documentation, including the README, by its path.
func pages(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, name := range []string{"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"} {
		out[name] = read(t, name)
	}
	for _, root := range []string{"docs", "examples"} {
		err := fs.WalkDir(repository, root, func(name string, _ fs.DirEntry, err error) error {
			if err == nil && path.Ext(name) == ".md" {
				out[name] = read(t, name)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := fs.ReadFile(repository, name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// literals returns the string literals of a Go file that the function selects. The function gets
// the name of a constant, or "" for any other literal.
func literals(t *testing.T, file string, counts func(name, value string) bool) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, read(t, file), 0)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	add := func(name string, node ast.Node) {
		literal, ok := node.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			return
		}
		value, err := strconv.Unquote(literal.Value)
		if err != nil {
			t.Fatal(err)
		}
		if counts(name, value) {
			out = append(out, value)
		}
	}
	ast.Inspect(parsed, func(node ast.Node) bool {
		if spec, ok := node.(*ast.ValueSpec); ok {
			for i, value := range spec.Values {
				add(spec.Names[i].Name, value)
			}
			return true
		}
		add("", node)
		return true
	})
	if len(out) == 0 {
		t.Fatalf("found nothing in %s", file)
	}
	return out
}

// Each reason of a condition has one section, and troubleshooting.md leads to it: it has the anchor
// of the reason, with a link if the section is on another page.
func TestEveryReasonHasASection(t *testing.T) {
	const index = "docs/troubleshooting.md"
	guide := read(t, index)
	names, err := fs.Glob(repository, "docs/troubleshooting/*.md")
	if err != nil {
		t.Fatal(err)
	}
	reasons := literals(t, "api/v1alpha2/conditions.go", func(name, _ string) bool { return strings.HasPrefix(name, "Reason") })
	for _, reason := range reasons {
		var sections []string
		for _, name := range append(names, index) {
			if regexp.MustCompile(`(?m)^### ` + reason + `$`).MatchString(read(t, name)) {
				sections = append(sections, name)
			}
		}
		if len(sections) != 1 {
			t.Errorf("the sections of %s are on %q, want one", reason, sections)
			continue
		}
		anchor := strings.ToLower(reason)
		row := `<a id="` + anchor + `"></a>[` + reason + `](` + strings.TrimPrefix(sections[0], "docs/") + "#" + anchor + ")"
		if sections[0] != index && !strings.Contains(guide, row) {
			t.Errorf("%s does not have %s", index, row)
		}
	}
}

// The metric of blocked objects counts every reason that status.blockedBy can have by the generated
// table.
func TestEveryFailureIsCounted(t *testing.T) {
	_, failures, _ := strings.Cut(read(t, "docs/reference/reasons.md"), "Reasons of failures")
	want := []string{v1alpha2.ReasonPaused}
	for _, row := range regexp.MustCompile("(?m)^\\| \\[`(\\w+)`").FindAllStringSubmatch(failures, -1) {
		if row[1] != v1alpha2.ReasonUnreadable { // such an object is not evaluated
			want = append(want, row[1])
		}
	}
	if diff := cmp.Diff(want, cached.BlockingReasons(), cmpopts.SortSlices(strings.Compare)); diff != "" {
		t.Errorf("counted reasons (-table +counted):\n%s", diff)
	}
}

// The page on capability levels references existing tests, and has the level of the
// ClusterServiceVersion.
func TestCapabilityLevelsAreHeld(t *testing.T) {
	page := read(t, "docs/capability-levels.md")
	written := map[string]bool{}
	err := fs.WalkDir(repository, ".", func(name string, entry fs.DirEntry, err error) error {
		// SkipDir for a symbolic link would skip the rest of the repository.
		if (name == "dist" || name == "bin") && entry.IsDir() {
			return fs.SkipDir
		}
		if err == nil && strings.HasSuffix(name, "_test.go") {
			for _, test := range regexp.MustCompile(`(?m)^func ([Tt]est\w+)\(`).FindAllStringSubmatch(read(t, name), -1) {
				written[test[1]] = true
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`([Tt]est[A-Z]\\w+)`").FindAllStringSubmatch(page, -1)
	if len(named) == 0 {
		t.Fatal("the page names no test")
	}
	for _, test := range named {
		if !written[test[1]] {
			t.Errorf("there is no test %s", test[1])
		}
	}
	level := regexp.MustCompile(`(?m)^    capabilities: (.+)$`).FindStringSubmatch(
		read(t, "bundle/manifests/nginx-operator.clusterserviceversion.yaml"))
	if level == nil || !strings.Contains(page, "says `"+level[1]+"`") {
		t.Errorf("the ClusterServiceVersion has the level %q, the page another", level)
	}
}

// The user guide has each metric, and each flag with its variable.
func TestUserGuideNamesMetricsAndFlags(t *testing.T) {
	const metrics, settings = "docs/guide/operations/metrics.md", "docs/guide/operations/settings.md"
	isMetric := func(_, value string) bool { return strings.HasPrefix(value, "nginx_operator_") }
	files, err := fs.Glob(repository, "internal/metrics/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, metric := range literals(t, file, isMetric) {
			if !strings.Contains(read(t, metrics), "`"+metric+"`") {
				t.Errorf("%s does not name the metric %s", metrics, metric)
			}
		}
	}
	var help strings.Builder
	if _, err := options.Parse([]string{"--help"}, os.LookupEnv, &help); !errors.Is(err, options.ErrHelp) {
		t.Fatal(err)
	}
	flags := regexp.MustCompile(`(?m)^ +(--[a-z-]+)`).FindAllStringSubmatch(help.String(), -1)
	variables := regexp.MustCompile(`\[([A-Z_]+)\]`).FindAllStringSubmatch(help.String(), -1)
	if len(flags) == 0 || len(flags) != len(variables) {
		t.Fatalf("found %d flags and %d variables in the help:\n%s", len(flags), len(variables), help.String())
	}
	for i := range flags {
		if row := "| `" + flags[i][1] + "` | `" + variables[i][1] + "` |"; !strings.Contains(read(t, settings), row) {
			t.Errorf("%s has no row that begins with %s", settings, row)
		}
	}
}

var (
	linkPattern    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	headingPattern = regexp.MustCompile(`(?m)^#+ (.+)$`)
	anchorPattern  = regexp.MustCompile(`<a id="([^"]+)"></a>`)
	fencePattern   = regexp.MustCompile("(?ms)^( *)```([a-z]*)\n(.*?)^ *```$")
)

// anchors returns the anchors of a page: those of its headings, as GitHub creates them, and the
// older ones of renamed headings.
func anchors(page string) map[string]bool {
	out := map[string]bool{}
	text := fencePattern.ReplaceAllString(page, "")
	for _, anchor := range anchorPattern.FindAllStringSubmatch(text, -1) {
		out[anchor[1]] = true
	}
	for _, heading := range headingPattern.FindAllStringSubmatch(text, -1) {
		name := strings.ReplaceAll(strings.ToLower(heading[1]), " ", "-")
		out[regexp.MustCompile(`[^a-z0-9_-]`).ReplaceAllString(name, "")] = true
	}
	return out
}

// Relative links lead to existing files and headings.
func TestLinks(t *testing.T) {
	anchorsOf := map[string]map[string]bool{}
	for page, text := range pages(t) {
		for _, link := range linkPattern.FindAllStringSubmatch(fencePattern.ReplaceAllString(text, ""), -1) {
			target, anchor, _ := strings.Cut(link[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			file := page
			if target != "" {
				file = path.Join(path.Dir(page), target)
			}
			if _, err := fs.Stat(repository, file); err != nil {
				t.Errorf("%s links to %s, which does not exist", page, link[1])
				continue
			}
			if anchor != "" && anchorsOf[file] == nil {
				anchorsOf[file] = anchors(read(t, file))
			}
			if anchor != "" && !anchorsOf[file][anchor] {
				t.Errorf("%s links to %s, and there is no such heading", page, link[1])
			}
		}
	}
}

// The examples of NginxOperators are valid objects without unknown fields.
func TestExamples(t *testing.T) {
	found := 0
	for page, text := range pages(t) {
		for _, fence := range fencePattern.FindAllStringSubmatch(text, -1) {
			if fence[2] != "yaml" {
				continue
			}
			for _, document := range regexp.MustCompile(`(?m)^---$`).Split(fence[3], -1) {
				if !regexp.MustCompile(`(?m)^kind: NginxOperator$`).MatchString(document) {
					continue
				}
				found++
				if err := valid([]byte(document)); err != nil {
					t.Errorf("%s: %v\n%s", page, err, document)
				}
			}
		}
	}
	if found < 15 {
		t.Errorf("found %d examples, the user guide has one of each field", found)
	}
}

// valid returns an error unless the API accepts a document as an NginxOperator.
func valid(document []byte) error {
	var kind metav1.TypeMeta
	if err := yaml.Unmarshal(document, &kind); err != nil {
		return err
	}
	switch kind.APIVersion {
	case v1alpha1.GroupVersion.String():
		return yaml.UnmarshalStrict(document, &v1alpha1.NginxOperator{})
	case v1alpha2.GroupVersion.String():
		object := &v1alpha2.NginxOperator{}
		if err := yaml.UnmarshalStrict(document, object); err != nil {
			return err
		}
		return validation.Complete(&object.Spec, field.NewPath("spec")).ToAggregate()
	}
	return fmt.Errorf("an example has apiVersion %q", kind.APIVersion)
}

// The commands between OLM and kubectl are in separate sections, which an end-to-end test runs.
func TestHandoverCommands(t *testing.T) {
	page := read(t, "docs/upgrades.md")
	for heading, want := range map[string]string{
		"From OLM to kubectl": "kubectl apply --server-side --force-conflicts -k config/default",
		"From kubectl to OLM": `"conversion":{"strategy":"None","webhook":null}`,
	} {
		script, err := docs.Section(page, heading)
		if err != nil || !strings.Contains(script, want) {
			t.Errorf("%s: %v, want %s in\n%s", heading, err, want, script)
		}
	}
	if script, err := docs.Section(page, "From nowhere"); err == nil {
		t.Errorf("a section that does not exist has %q", script)
	}
}

// An end-to-end test applies the manifests of a Subscription.
func TestManifestsOfASubscription(t *testing.T) {
	manifests, err := docs.Manifests(read(t, "docs/install.md"), "OLM: a Subscription")
	if err != nil || !strings.Contains(manifests, "kind: CatalogSource\n") || !strings.Contains(manifests, "kind: Subscription\n") {
		t.Errorf("%v: %s", err, manifests)
	}
	if manifests, err := docs.Manifests(read(t, "docs/install.md"), "kubectl"); err == nil {
		t.Errorf("a section without manifests has %q", manifests)
	}
}

// clusterRoles returns the operator's ClusterRoles by name.
func clusterRoles(t *testing.T) map[string]*rbacv1.ClusterRole {
	t.Helper()
	out := map[string]*rbacv1.ClusterRole{}
	for document := range strings.SplitSeq(read(t, "config/rbac/role.yaml"), "---\n") {
		role := &rbacv1.ClusterRole{}
		if err := yaml.Unmarshal([]byte(document), role); err != nil {
			t.Fatal(err)
		}
		if role.Kind == "ClusterRole" {
			out[role.Name] = role
		}
	}
	if len(out) != 2 || out["manager-role"] == nil || out["manager-cluster-role"] == nil {
		t.Fatalf("config/rbac/role.yaml has %d ClusterRoles", len(out))
	}
	return out
}

// The permissions that an operator for some namespaces has in the whole cluster are on
// cluster-scoped objects, and to write Events. The guide and the decision say so.
func TestClusterWidePermissions(t *testing.T) {
	scoped := map[string]bool{
		"mutatingwebhookconfigurations": true, "validatingwebhookconfigurations": true, "customresourcedefinitions": true,
		"customresourcedefinitions/status": true, "storageversionmigrations": true, "tokenreviews": true, "subjectaccessreviews": true,
	}
	for _, rule := range clusterRoles(t)["manager-cluster-role"].Rules {
		for _, resource := range rule.Resources {
			if !scoped[resource] && (resource != "events" || !slices.Equal(rule.Verbs, []string{"create", "patch"})) {
				t.Errorf("manager-cluster-role has %v on %s", rule.Verbs, resource)
			}
		}
		named := len(rule.ResourceNames) > 0
		if !named && !slices.Equal(rule.Verbs, []string{"create"}) && !slices.Contains(rule.Resources, "events") {
			t.Errorf("manager-cluster-role has %v on all %v", rule.Verbs, rule.Resources)
		}
	}
	files, err := docs.Files(read(t, "docs/guide/operations/watch-namespaces.md"), "Create an overlay")
	if err != nil || len(files) != 2 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	binding := &rbacv1.RoleBinding{}
	if err := yaml.UnmarshalStrict([]byte(files["rolebindings.yaml"]), binding); err != nil ||
		binding.RoleRef.Name != "nginx-operator-manager-role" || binding.RoleRef.Kind != "ClusterRole" {
		t.Errorf("%+v, %v", binding, err)
	}
}

// The operator can create Pods in every namespace and read every Secret, so its token is equivalent
// to cluster-admin. While its RBAC permissions allow this, SECURITY.md and the guide describe it,
// and which users must not create Pods in its namespace.
func TestTheOperatorsTokenIsDescribed(t *testing.T) {
	roles := clusterRoles(t)
	may := func(verb, group, resource string) bool {
		return slices.ContainsFunc(roles["manager-role"].Rules, func(rule rbacv1.PolicyRule) bool {
			return len(rule.ResourceNames) == 0 && slices.Contains(rule.Verbs, verb) && slices.Contains(rule.APIGroups, group) &&
				slices.Contains(rule.Resources, resource)
		})
	}
	if !may("create", "apps", "deployments") || !may("get", "", "secrets") {
		t.Fatal("the operator's token is no longer equivalent to cluster-admin: correct SECURITY.md and docs/guide/operations/permissions.md")
	}
	for name, sentences := range map[string][]string{
		"SECURITY.md": {
			"[equivalent to cluster-admin](docs/guide/operations/permissions.md#the-token-of-the-operator)",
			"create Pods in `kube-system` and read all Secrets",
			"Only cluster administrators may create Pods in the operator's namespace",
		},
		"docs/guide/operations/permissions.md": {
			"**The operator's token is equivalent to cluster-admin.**", "it can read every Secret",
			"Only users who are cluster administrators already may create Pods in the operator's namespace",
		},
	} {
		text := strings.Join(strings.Fields(read(t, name)), " ")
		for _, sentence := range sentences {
			if !strings.Contains(text, sentence) {
				t.Errorf("%s does not say %q", name, sentence)
			}
		}
	}
}
