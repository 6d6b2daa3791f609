package docs_test

import (
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/example/nginx-operator/test/golden"
)

// termsPage defines the terms, and lists the words that are not used.
const termsPage = "docs/reference/terms.md"

// exception is a file or directory that has a word that is not used elsewhere.
type exception struct{ place, word, reason string }

var exceptions = []exception{
	{termsPage, "", "lists the words"},
	{"docs/development", "declaration", "is a type in Go"},
	{"docs/development", "declarations", "is a type in Go"},
	{"docs/development", "operand", "is a package in Go"},
	{"docs/development", "operands", "is a package in Go"},
	{"docs/capability-levels.md", "operands", "is the word of the Operator Framework's questions"},
	{"config/scorecard/config.yaml", "operand", "is a part of the name of a published test"},
	{"hack/chart/static/values", "operands", "is a value of the published chart"},
	{"config/manifests/bases/", "declaration", "is the display name of status.firstDeclarationHash"},
	{"pkg/apply/all.go", "custom resource", "is a message of the API server"},
}

// No text for users has a word that the page of terms does not use. Architecture decisions and the
// changelog of earlier releases are history.
func TestForbiddenWords(t *testing.T) {
	words, texts := forbiddenWords(t), userTexts(t)
	used := map[exception]bool{}
	for _, place := range slices.Sorted(maps.Keys(texts)) {
		for _, hit := range words.in(texts[place]) {
			at := slices.IndexFunc(exceptions, func(e exception) bool {
				return strings.HasPrefix(place, e.place) && (e.word == "" || e.word == hit.word)
			})
			if at < 0 {
				t.Errorf("%s has %q: write %q (%s)", place, hit.context, hit.instead, termsPage)
				continue
			}
			used[exceptions[at]] = true
		}
	}

	for _, e := range exceptions {
		if !used[e] {
			t.Errorf("%s does not have %q: remove the exception", e.place, e.word)
		}
	}
}

// Each term is defined once.
func TestTermsAreDefinedOnce(t *testing.T) {
	definitions, _, _ := strings.Cut(read(t, termsPage), "\n## Names that are older")
	terms := map[string]bool{"term": true}
	for _, row := range regexp.MustCompile(`(?m)^\| ([^|]+) \| \w`).FindAllStringSubmatch(definitions, -1) {
		if terms[row[1]] && row[1] != "term" {
			t.Errorf("%s defines %q twice", termsPage, row[1])
		}
		terms[row[1]] = true
	}
	if len(terms) < 30 {
		t.Errorf("%s defines %d terms", termsPage, len(terms)-1)
	}
}

// A word counts across lines and in every case, and not in code, in targets of links, and in other
// words.
func TestWordsInText(t *testing.T) {
	words := forbiddenWords(t)
	for text, want := range map[string]string{
		"This is the way\nout.":                            "way out",
		"Operands serve":                                   "operands",
		"Create a `NginxOperator` first":                   "a NginxOperator",
		"Set `operands.nginx.image`":                       "",
		"See [images](behaviour.md#the-operand-image).":    "",
		"```sh\nmake operand\n```\nAn NginxOperator":       "",
		"The cooperands of a subway outside of the CRD":    "",
		"Changes are applied, and the spec cannot be used": "",
	} {
		var found []string
		for _, hit := range words.in(prose(text)) {
			found = append(found, hit.word)
		}
		if strings.Join(found, ", ") != want {
			t.Errorf("%q has %q, want %q", text, found, want)
		}
	}
}

// forbidden has the words that are not used, each with the words to write instead.
type forbidden map[string]string

type hit struct{ word, instead, context string }

// in returns the words in a text.
func (f forbidden) in(text string) []hit {
	lower := strings.ToLower(text)
	var hits []hit
	for _, word := range slices.Sorted(maps.Keys(f)) {
		if !strings.Contains(lower, strings.ToLower(word)) {
			continue
		}
		pattern := regexp.MustCompile(`(?i)(\S+ ){0,5}\b` + regexp.QuoteMeta(word) + `\b( \S+){0,3}`)
		for _, context := range pattern.FindAllString(text, -1) {
			hits = append(hits, hit{word, f[word], context})
		}
	}
	return hits
}

// forbiddenWords returns the words of the last table of the page.
func forbiddenWords(t *testing.T) forbidden {
	t.Helper()
	_, section, _ := strings.Cut(read(t, termsPage), "\n## Words that are not used\n")
	words := forbidden{}
	for _, row := range regexp.MustCompile(`(?m)^\| ([^|]+) \| ([^|]+) \|$`).FindAllStringSubmatch(section, -1) {
		for word := range strings.SplitSeq(row[2], ", ") {
			words[word] = row[1]
		}
	}
	delete(words, "not")
	if len(words) < 40 {
		t.Fatalf("%s lists %d words", termsPage, len(words))
	}
	return words
}

// userTexts returns the texts that users read, by file.
func userTexts(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for name, page := range pages(t) {
		if strings.HasPrefix(name, "docs/adr/") || strings.HasPrefix(name, "examples/") {
			continue
		}
		if name == "CHANGELOG.md" {
			page = strings.Join(strings.SplitAfterN(page, "\n## ", 3)[:2], "")
		}
		texts[name] = prose(page)
	}

	for _, root := range []string{"config", "hack/chart/static", "api"} {
		walk(t, root, func(name string) {
			switch path.Ext(name) {
			case ".yaml", ".json", ".md":
				texts[name] = oneLine(regexp.MustCompile(`(?m)^\s*#`).ReplaceAllString(read(t, name), ""))
			case ".go":
				comments := regexp.MustCompile(`(?m)^\s*// ([^+\n].*)$`).FindAllStringSubmatch(read(t, name), -1)
				for _, comment := range comments {
					texts[name] += comment[1] + " "
				}
			}
		})
	}

	packages := map[string]bool{".": true}
	for _, root := range []string{"cmd", "controllers", "internal", "pkg"} {
		walk(t, root, func(name string) {
			if path.Ext(name) == ".go" && !strings.HasSuffix(name, "_test.go") {
				packages[path.Dir(name)] = true
			}
		})
	}
	for name := range packages {
		literals, err := golden.Literals(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		for _, literal := range literals {
			file := path.Join(name, filepath.Base(literal.Position.Filename))
			texts[file] += oneLine(literal.String()) + "\n"
		}
	}
	return texts
}

// walk calls a function with the name of each file in a directory of the repository.
func walk(t *testing.T, root string, visit func(name string)) {
	t.Helper()
	err := fs.WalkDir(repository, root, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			visit(name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// prose returns a page in one line, without code and without the targets of links.
func prose(page string) string {
	for _, block := range []string{"(?ms)^````.*?^````$", "(?ms)^```.*?^```$", "(?ms)^ +```.*?^ +```$", `<a id="[^"]*">`} {
		page = regexp.MustCompile(block).ReplaceAllString(page, "")
	}
	page = strings.ReplaceAll(page, "`NginxOperator`", "NginxOperator")
	page = regexp.MustCompile("`[^`]*`").ReplaceAllString(page, "`")
	return oneLine(regexp.MustCompile(`\]\([^)]*\)`).ReplaceAllString(page, "]"))
}
