package docs_test

import (
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"
)

// The user guide is the index of all pages. The pages on fields, the runbooks, and the decisions
// have indexes of their own.
func TestUserGuideListsEveryPage(t *testing.T) {
	const index = "docs/user-guide.md"
	guide := read(t, index)
	found := 0
	err := fs.WalkDir(repository, "docs", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (name == "docs/guide/fields" || name == "docs/runbooks" || name == "docs/adr") {
			return fs.SkipDir
		}
		if path.Ext(name) != ".md" || name == index {
			return nil
		}
		if found++; !strings.Contains(guide, "]("+strings.TrimPrefix(name, "docs/")+")") {
			t.Errorf("%s does not link to %s", index, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"runbooks/README.md", "adr/README.md", "guide/fields.md"} {
		if !strings.Contains(guide, "]("+name+")") {
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
