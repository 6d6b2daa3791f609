package golden

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLiterals(t *testing.T) {
	t.Parallel()
	const source = `package p

import "fmt"

type tagged struct{ Field string ` + "`json:\"not this\"`" + ` }

var pattern = regexp.MustCompile("a pattern here")

const path = "/etc/nginx"

func f(name string, n int) string {
	return fmt.Sprintf("the limit of %q is %d, "+
		"100%% of it", name, n) + "no " + name + " found" + path
}
`
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "p.go"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "p_test.go"), []byte("package p\n\nconst other = \"of a test\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	literals, err := Literals(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, literal := range literals {
		got = append(got, literal.String())
	}
	want := []string{"…no … found…", "the limit of … is …, 100% of it"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
	for text, in := range map[string]bool{"there is no page found": true, "no page\nfound": false, "nothing found": false} {
		if literals[0].In(text) != in {
			t.Errorf("%q in %q: %t, want %t", literals[0], text, !in, in)
		}
	}
}
