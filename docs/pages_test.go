package docs_test

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"
)

// indexes are the indexes of directories, which list the pages there.
var indexes = map[string]string{
	"docs/adr": "docs/adr/README.md", "docs/development": "docs/development.md", "docs/guide/fields": "docs/guide/fields.md",
	"docs/guide/operations": "docs/guide/operations.md", "docs/runbooks": "docs/runbooks/README.md",
	"docs/troubleshooting": "docs/troubleshooting.md",
}

// The user guide is the index of all pages, except of those in directories with an index of their
// own. Each page is in its index.
func TestUserGuideListsEveryPage(t *testing.T) {
	const index = "docs/user-guide.md"
	guide := read(t, index)
	found := 0
	err := fs.WalkDir(repository, "docs", func(name string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if path.Ext(name) != ".md" || name == index || name == indexes[path.Dir(name)] {
			return nil
		}
		list, text := index, guide
		if own, ok := indexes[path.Dir(name)]; ok {
			list, text = own, read(t, own)
		}
		if found++; !strings.Contains(text, "]("+strings.TrimPrefix(name, path.Dir(list)+"/")) {
			t.Errorf("%s does not link to %s", list, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range indexes {
		if !strings.Contains(guide, "]("+strings.TrimPrefix(name, "docs/")+")") {
			t.Errorf("%s does not link to %s", index, name)
		}
	}
	if found < 20 {
		t.Errorf("found %d pages", found)
	}
}

// README, installation, and ClusterServiceVersion have the same oldest Kubernetes.
func TestOldestKubernetes(t *testing.T) {
	minimum := minKubeVersion(t)
	for _, page := range []string{"README.md", "docs/install.md"} {
		if want := fmt.Sprintf("Kubernetes %d.%d or later", minimum.Major(), minimum.Minor()); !strings.Contains(read(t, page), want) {
			t.Errorf("%s does not say %q", page, want)
		}
	}
}

// The page on outages describes the webhooks as they are configured: which writes fail without the
// operator, and how long the API server waits for an answer.
func TestOutagePageDescribesWebhooks(t *testing.T) {
	page := read(t, "docs/guide/operator-down.md")
	fails, timeouts := 0, map[int32]int{}
	for _, document := range strings.Split(read(t, "config/webhook/manifests.yaml"), "\n---\n") {
		var configuration struct {
			Webhooks []admissionregistrationv1.ValidatingWebhook
		}
		if err := yaml.Unmarshal([]byte(document), &configuration); err != nil {
			t.Fatal(err)
		}
		for _, webhook := range configuration.Webhooks {
			if *webhook.FailurePolicy == admissionregistrationv1.Fail {
				fails++
				name, _, _ := strings.Cut(webhook.Name, ".nginxoperators.")
				if !strings.Contains(page, "`"+name+"` has `failurePolicy: Fail`") {
					t.Errorf("the page does not say that %s fails", name)
				}
				continue
			}
			timeouts[*webhook.TimeoutSeconds]++
			if seconds := strconv.Itoa(int(*webhook.TimeoutSeconds)) + " seconds"; !strings.Contains(page, seconds) {
				t.Errorf("the page does not say that %s waits %s", webhook.Name, seconds)
			}
		}
	}
	if fails != 1 || timeouts[5] != 2 || timeouts[2] != 1 {
		t.Errorf("%d webhooks fail, and the others wait %v; the page describes one that fails, two of 5 s, and one of 2 s", fails, timeouts)
	}
}

// Commands that need a clone say so: the page has the word before them. The pages on development are
// for readers who have one.
func TestCommandsThatNeedAClone(t *testing.T) {
	needed := regexp.MustCompile(`(?m)^\s*(?:make |go (?:run|test|build) )|(?:-f|-k) (?:config|test|hack)/`)
	commands := 0
	for name, text := range pages(t) {
		if strings.HasPrefix(name, "docs/development") || strings.HasPrefix(name, "examples/") {
			continue
		}
		for _, fence := range fencePattern.FindAllStringSubmatchIndex(text, -1) {
			language, script := text[fence[4]:fence[5]], text[fence[6]:fence[7]]
			if (language != "sh" && language != "bash" && language != "console") || !needed.MatchString(script) {
				continue
			}
			if commands++; !strings.Contains(text[:fence[0]], "clone") {
				t.Errorf("%s does not say that this needs a clone:\n%s", name, script)
			}
		}
	}
	if commands < 10 {
		t.Errorf("%d blocks need a clone", commands)
	}
}
