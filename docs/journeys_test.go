package docs_test

import (
	"io/fs"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/nginx-operator/docs"
)

// journeyPage is a page of two steps that tests run and one that they do not run.
const journeyPage = "# Do it\n\nCommands: 4, 3 tested.\n\n## First\n\n" +
	"Save this as `a.yaml`, with\nyour name:\n\n```yaml\na: 1\n```\n\n" +
	"```sh\n# Both at once\nkubectl apply -f a.yaml\nkubectl get \\\n  pods <<EOF\nkubectl none\nEOF\n```\n\n" +
	"```text\nNAME   AGE\nweb  ...s\n```\n\n<!-- not run: it needs a printer -->\n```sh\nlpr a.yaml\n```\n\n```sh\ntrue\n```\n\n" +
	"## Untested commands\n\n* `lpr`: it needs a printer\n"

func TestParseJourney(t *testing.T) {
	got, err := docs.ParseJourney(journeyPage)
	if err != nil {
		t.Fatal(err)
	}
	want := &docs.Journey{Title: "Do it", Commands: 4, Tested: 3, Steps: []docs.Step{
		{
			Section:  "First",
			Script:   "# Both at once\nkubectl apply -f a.yaml\nkubectl get \\\n  pods <<EOF\nkubectl none\nEOF\n",
			Commands: []string{"kubectl apply -f a.yaml\n", "kubectl get \\\n  pods <<EOF\nkubectl none\nEOF\n"},
			Files:    map[string]string{"a.yaml": "a: 1\n"},
			Answer:   "NAME   AGE\nweb  ...s\n",
		},
		{Section: "First", Script: "lpr a.yaml\n", Commands: []string{"lpr a.yaml\n"}, Files: map[string]string{}, NotRun: "it needs a printer"},
		{Section: "First", Script: "true\n", Commands: []string{"true\n"}, Files: map[string]string{}},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the page (-want +got):\n%s", diff)
	}
	for output, want := range map[string]bool{
		"x\nNAME  AGE\nweb  12s\n":    true,
		"NAME\tAGE\nother 1s\nweb 2s": true,
		"web 12s\nNAME AGE\n":         false,
		"NAME AGE\nweb2 1s\n":         false,
		"":                            false,
	} {
		if err := got.Steps[0].Check(output); (err == nil) != want {
			t.Errorf("%q: %v", output, err)
		}
	}
}

// Each command of a console fence is a step with its output. Ages, times, and blanks can differ.
func TestSteps(t *testing.T) {
	const page = "# Title\n\n```console\n$ kubectl apply -f a\n$ kubectl get foos\nNAME     UP     AGE\nfoo-01   true   2m3s\n```\n" +
		"Text\n$ no step\n\n```yaml\n$ no step\n```\n\n```console\n$ date\n2026-01-02T03:04:05Z\n```\n"
	got, err := docs.Steps(page)
	want := []docs.Step{
		{Section: "Title", Script: "kubectl apply -f a", Commands: []string{"kubectl apply -f a"}},
		{
			Section: "Title", Script: "kubectl get foos", Commands: []string{"kubectl get foos"},
			Answer: "NAME     UP     AGE\nfoo-01   true   2m3s\n",
		},
		{Section: "Title", Script: "date", Commands: []string{"date"}, Answer: "2026-01-02T03:04:05Z\n"},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Fatalf("%v, the page (-want +got):\n%s", err, diff)
	}
	for output, want := range map[string]bool{
		"NAME UP AGE\nfoo-01 true 9s\n":    true,
		"NAME UP AGE\nfoo-01 false 9s\n":   false,
		"NAME UP AGE\nfoo-01 true old\n":   false,
		"NAME UP AGE\n":                    false,
		"NAME UP AGE\nfoo-01 true 1d 9s\n": false,
	} {
		if err := got[1].Check(output); (err == nil) != want {
			t.Errorf("%q: %v", output, err)
		}
	}
	if err := got[2].Check("2031-12-31T23:59:59Z\n"); err != nil {
		t.Error(err)
	}
}

// A page with a wrong number, a missing reason, or a reason without a marker is refused.
func TestParseJourneyRefuses(t *testing.T) {
	for name, page := range map[string]string{
		"a page without a number":          strings.Replace(journeyPage, "Commands:", "Lines:", 1),
		"another number of commands":       strings.Replace(journeyPage, "Commands: 4", "Commands: 5", 1),
		"another number of tested ones":    strings.Replace(journeyPage, ", 3 tested", ", all tested", 1),
		"a step that is not listed":        strings.Replace(journeyPage, "* `lpr`: it needs a printer\n", "", 1),
		"another reason":                   strings.Replace(journeyPage, "`: it needs", "`: it lacks", 1),
		"an item without a step":           journeyPage + "* `true`: it is too easy\n",
		"output before the first command":  strings.Replace(journeyPage, "## First", "```text\nx\n```\n", 1),
		"a heredoc that does not end":      strings.Replace(journeyPage, "none\nEOF\n", "none\nE0F\n", 1),
		"a step that starts with a blank":  strings.Replace(journeyPage, "```sh\ntrue", "```sh\n true", 1),
		"two outputs of the same commands": strings.Replace(journeyPage, "```text", "```text\nx\n```\n\n```text", 1),
	} {
		if _, err := docs.ParseJourney(page); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

// End-to-end tests run the commands of these pages of the guide like those of a journey.
func TestGuidesInTheFormOfAJourney(t *testing.T) {
	for _, page := range []string{"docs/guide/backup.md", "docs/guide/first-instance.md"} {
		journey, err := docs.ParseJourney(read(t, page))
		if err != nil {
			t.Errorf("%s: %v", page, err)
			continue
		}
		if journey.Tested != journey.Commands {
			t.Errorf("%s: the tests run %d of %d commands", page, journey.Tested, journey.Commands)
		}
	}
}

// Every page of docs/journeys states its number of commands and lists those that no test runs. The
// index links to every page.
func TestJourneys(t *testing.T) {
	files, err := fs.Glob(repository, "docs/journeys/*.md")
	if err != nil || len(files) < 2 {
		t.Fatalf("found %d pages: %v", len(files), err)
	}
	index := read(t, "docs/journeys/README.md")
	for _, file := range files {
		name := path.Base(file)
		if name == "README.md" {
			continue
		}
		page := read(t, file)
		journey, err := docs.ParseJourney(page)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if link := "[" + journey.Title + "](" + name + ")"; !strings.Contains(index, link) {
			t.Errorf("docs/journeys/README.md has no link %s", link)
		}
		if lines := strings.Count(page, "\n"); lines > 160 {
			t.Errorf("%s has %d lines, a reader under stress reads 160", file, lines)
		}
	}
}
