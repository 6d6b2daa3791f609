package docs_test

import (
	"io/fs"
	"path"
	"strings"
	"testing"

	"github.com/example/nginx-operator/docs"
)

// End-to-end tests run every recipe (TestRecipes), and the index links to each by its title. The
// recipes have the same sections, so that a reader finds the limits.
func TestRecipes(t *testing.T) {
	files, err := fs.Glob(repository, "docs/guide/recipes/*.md")
	if err != nil || len(files) != 7 {
		t.Fatalf("found %d pages, want six recipes and their index: %v", len(files), err)
	}
	const index, uploads = "docs/guide/recipes/README.md", "docs/guide/uploads.md"
	list, tests := read(t, index), read(t, "test/e2e/recipes_test.go")
	for _, file := range append(files, uploads) {
		if file == index {
			continue
		}
		page, name, link := read(t, file), strings.TrimSuffix(path.Base(file), ".md"), path.Base(file)
		if file == uploads {
			link = "../" + link
		}
		recipe, err := docs.ParseJourney(page)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if recipe.Tested != recipe.Commands {
			t.Errorf("%s: the tests run %d of %d commands", file, recipe.Tested, recipe.Commands)
		}
		if !strings.Contains(tests, `"`+name+`"`) {
			t.Errorf("no end-to-end test runs %s", file)
		}
		if !strings.Contains(list, "["+recipe.Title+"]("+link+")") {
			t.Errorf("%s has no link [%s](%s)", index, recipe.Title, link)
		}
		for _, part := range []string{"\n**Use it if** ", "\n## Check\n", "\n## How it works\n", "\n## Limits\n"} {
			if !strings.Contains(page, part) {
				t.Errorf("%s has no %q", file, strings.TrimSpace(part))
			}
		}
		for _, example := range docs.Examples(page) {
			for _, document := range example.Documents {
				if !strings.Contains(document, "kind: NginxOperator\n") {
					continue
				}
				if err := valid([]byte(document)); err != nil {
					t.Errorf("%s, section %q: %v", file, example.Section, err)
				}
			}
		}
	}
}
