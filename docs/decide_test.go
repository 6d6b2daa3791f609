package docs_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

const factsPage = "docs/facts.md"

// sectionOf returns a section of the second level of a page.
func sectionOf(t *testing.T, page, heading string) string {
	t.Helper()
	_, section, found := strings.Cut(read(t, page), "\n## "+heading+"\n")
	if !found {
		t.Fatalf("%s has no section %q", page, heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	return section
}

// The page of facts has the kinds of an installation with their numbers, and its images.
func TestFactsOfAnInstallation(t *testing.T) {
	rendered, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), "../config/default")
	if err != nil {
		t.Fatal(err)
	}
	installed := map[string]int{}
	for _, object := range rendered.Resources() {
		installed[object.GetKind()]++
	}

	section := sectionOf(t, factsPage, "What it installs")
	stated := map[string]int{}
	for _, row := range regexp.MustCompile(`(?m)^\| ([A-Z]\w+) \| (\d+) \|`).FindAllStringSubmatch(section, -1) {
		stated[row[1]], _ = strconv.Atoi(row[2])
	}
	if diff := cmp.Diff(installed, stated); diff != "" {
		t.Errorf("the kinds of config/default (-installed +stated):\n%s", diff)
	}
	if want := fmt.Sprintf("`install.yaml` has %d objects.", rendered.Size()); !strings.Contains(section, want) {
		t.Errorf("%s does not say %q", factsPage, want)
	}
	for _, variable := range []string{
		"RELATED_IMAGE_NGINX", "RELATED_IMAGE_NGINX_PROMETHEUS_EXPORTER", "RELATED_IMAGE_NGINX_REQUEST_METRICS",
	} {
		image := regexp.MustCompile(`name: ` + variable + `\n +value: (\S+)\n`).FindStringSubmatch(read(t, "config/manager/manager.yaml"))
		if image == nil || !strings.Contains(section, "| `"+image[1]+"` |") {
			t.Errorf("%s does not have the image %v of %s", factsPage, image, variable)
		}
	}
}

// The page of facts has each resource that the operator's roles have, and no other.
func TestFactsOfPermissions(t *testing.T) {
	granted := map[string]bool{}
	for _, file := range []string{"config/rbac/role.yaml", "config/rbac/leader_election_role.yaml"} {
		for document := range strings.SplitSeq(read(t, file), "---\n") {
			role := &rbacv1.Role{}
			if err := yaml.Unmarshal([]byte(document), role); err != nil {
				t.Fatal(err)
			}
			for _, rule := range role.Rules {
				for _, resource := range rule.Resources {
					granted[resource] = true
				}
			}
		}
	}

	stated := map[string]bool{}
	for _, name := range regexp.MustCompile("`([a-z]+(?:/[a-z]+)?)(?:`|,)").FindAllStringSubmatch(sectionOf(t, factsPage, "Permissions"), -1) {
		stated[name[1]] = true
	}
	if diff := cmp.Diff(granted, stated); diff != "" {
		t.Errorf("resources (-granted +stated):\n%s", diff)
	}
}

// boundsPattern matches a row with the bounds of the costs: the number of instances, the memory of
// the leader, also after a change of the leader, that of the standby, and the processor time.
var boundsPattern = regexp.MustCompile(`(?m)^\| (\d+) \| less than (\d+) MiB(?:, less than (\d+) MiB[^|]*)? ` +
	`\| less than (\d+) MiB \| less than (\d+) ms \|$`)

// The bounds in the page of facts hold for the measured costs. The memory after a change of the
// leader is also below the limit of the container.
func TestFactsOfCosts(t *testing.T) {
	performance := read(t, "docs/performance.md")
	section := strings.ReplaceAll(sectionOf(t, factsPage, "What it costs"), "1,000", "1000")
	section = strings.ReplaceAll(section, "10,000", "10000")
	number := func(text string) float64 {
		value, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		return value
	}

	bounds := boundsPattern.FindAllStringSubmatch(section, -1)
	if len(bounds) != 3 {
		t.Fatalf("%d rows with bounds", len(bounds))
	}
	for _, bound := range bounds {
		measured := regexp.MustCompile(`(?m)^\| ` + bound[1] + ` \| ([\d.]+) ms \| [^|]+ \| [\d.]+ \| (\d+) MiB \| (\d+) MiB \|$`).
			FindStringSubmatch(performance)
		if measured == nil {
			t.Errorf("docs/performance.md has no row of %s instances", bound[1])
			continue
		}
		for subject, values := range map[string][2]string{
			"processor time": {measured[1], bound[5]}, "leader": {measured[2], bound[2]}, "standby": {measured[3], bound[4]},
		} {
			if number(values[0]) >= number(values[1]) {
				t.Errorf("%s with %s instances: measured %s, %s says less than %s", subject, bound[1], values[0], factsPage, values[1])
			}
		}
	}

	peaks := regexp.MustCompile(`(?:leader's memory was|its memory rose to at most) (\d+) MiB`).FindAllStringSubmatch(performance, -1)
	most := bounds[2][3]
	if len(peaks) != 2 || slices.ContainsFunc(peaks, func(peak []string) bool { return number(peak[1]) >= number(most) }) {
		t.Errorf("the peaks are %v, %s says less than %s", peaks, factsPage, most)
	}
	limit := regexp.MustCompile(`limits:\n +memory: (\d+)Mi\n`).FindStringSubmatch(read(t, "config/manager/manager.yaml"))
	if limit == nil || !strings.Contains(section, "a limit of "+limit[1]+"Mi") || number(limit[1]) <= number(most) {
		t.Errorf("the limit is %v", limit)
	}
}
