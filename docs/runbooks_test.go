package docs_test

import (
	"io/fs"
	"path"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// runbookPattern is the form of a runbook: the alert, a command to run, and the sections Meaning,
// Impact, and Remedy.
var runbookPattern = regexp.MustCompile(
	"(?s)^# (\\w+)\n\n```sh\nkubectl .+?\n```\n\n.+\n## Meaning\n\n.+\n## Impact\n\n.+\n## Remedy\n\n.+$")

// alert has the tested fields of an alert in a PrometheusRule.
type alert struct {
	Alert, For          string
	Labels, Annotations map[string]string
}

// alertsOf returns the alerts of a manifest.
func alertsOf(t *testing.T, manifest string) []alert {
	t.Helper()
	var rule struct {
		Spec struct {
			Groups []struct{ Rules []alert }
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, manifest)), &rule); err != nil {
		t.Fatal(err)
	}
	var out []alert
	for _, group := range rule.Spec.Groups {
		out = append(out, group.Rules...)
	}
	return out
}

// Each alert links to its runbook, the index lists it with its severity, and each runbook belongs
// to an alert.
func TestRunbooks(t *testing.T) {
	left := map[string]bool{}
	files, err := fs.Glob(repository, "docs/runbooks/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		left[strings.TrimSuffix(path.Base(file), ".md")] = true
	}
	delete(left, "README")
	index := read(t, "docs/runbooks/README.md")
	for _, manifest := range []string{"config/monitoring/prometheusrule.yaml", "assets/manifests/prometheusrule.yaml"} {
		for _, rule := range alertsOf(t, manifest) {
			if !left[rule.Alert] {
				t.Errorf("%s has no runbook", rule.Alert)
				continue
			}
			delete(left, rule.Alert)
			page := "docs/runbooks/" + rule.Alert + ".md"
			if title := runbookPattern.FindStringSubmatch(read(t, page)); title == nil || title[1] != rule.Alert {
				t.Errorf("%s does not consist of its name, a command, Meaning, Impact, and Remedy", page)
			}
			if url := rule.Annotations["runbook_url"]; url != "https://github.com/example/nginx-operator/blob/main/"+page {
				t.Errorf("%s links to %q", rule.Alert, url)
			}
			if row := "| [" + rule.Alert + "](" + rule.Alert + ".md) | " + rule.Labels["severity"] + " | "; !strings.Contains(index, row) {
				t.Errorf("docs/runbooks/README.md has no row that starts with %q", row)
			}
		}
	}
	for name := range left {
		t.Errorf("docs/runbooks/%s.md belongs to no alert", name)
	}
}
