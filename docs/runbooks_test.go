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

// Each alert links to its runbook in the installed release, the index lists it with its severity,
// and each runbook belongs to an alert.
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
	index, version := read(t, "docs/runbooks/README.md"), strings.TrimSpace(read(t, "VERSION"))
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
			if url := rule.Annotations["runbook_url"]; url != "https://github.com/example/nginx-operator/blob/v"+version+"/"+page {
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

// The first command of a runbook about instances is that of the plugin, and the placeholder of a
// namespace says whose it is.
func TestCommandsOfRunbooks(t *testing.T) {
	index := read(t, "docs/runbooks/README.md")
	placeholder := regexp.MustCompile(`\b[A-Z]{3,}(?:_[A-Z]+)*\b`)
	commands := regexp.MustCompile("(?s)```sh\n(.+?)```|`(kubectl .+?)`")
	for _, manifest := range []string{"config/monitoring/prometheusrule.yaml", "assets/manifests/prometheusrule.yaml"} {
		for _, rule := range alertsOf(t, manifest) {
			page := read(t, "docs/runbooks/"+rule.Alert+".md")
			ofOperator := strings.HasPrefix(rule.Alert, "NginxOperator")
			if first := strings.Contains(page, "\n\n```sh\nkubectl nginx status "); first == ofOperator {
				t.Errorf("%s starts with kubectl nginx status: %t", rule.Alert, first)
			}
			for _, command := range commands.FindAllStringSubmatch(page, -1) {
				for _, name := range placeholder.FindAllString(command[1]+command[2], -1) {
					switch {
					case name == "END" || name == "ERROR": // of awk, and of the log
					case !strings.Contains(index, "`"+name+"`") && !strings.Contains(page, "`"+name+"` is "):
						t.Errorf("%s does not explain %s: %s", rule.Alert, name, command[0])
					case ofOperator && name != "OPERATOR_NAMESPACE":
						t.Errorf("%s uses %s: %s", rule.Alert, name, command[0])
					}
				}
			}
		}
	}
}

// kubectl prints only ten lines of each Pod if it selects Pods by label.
func TestLogsBySelectorAreComplete(t *testing.T) {
	logs := regexp.MustCompile("kubectl [^`\n|]*\\blogs [^`\n|]*")
	selected := 0
	for name, text := range pages(t) {
		for _, command := range logs.FindAllString(text, -1) {
			if !strings.Contains(command, " -l ") {
				continue
			}
			if selected++; !strings.Contains(command, " --tail=") {
				t.Errorf("%s: %s lacks --tail=-1", name, command)
			}
		}
	}
	if selected < 2 {
		t.Errorf("%d commands select the Pods of logs by label", selected)
	}
}
