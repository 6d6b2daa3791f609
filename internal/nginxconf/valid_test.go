package nginxconf

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	crossplane "github.com/nginxinc/nginx-go-crossplane"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// TestExamples verifies that realistic configurations are accepted. nginx 1.30 accepts all of them,
// and nginx 1.28 all except newest. The first line of a file can have its spec.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob("testdata/valid/*.conf")
	if err != nil || len(files) < 15 {
		t.Fatalf("%d examples: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			raw, err := os.ReadFile(file) //nolint:gosec // a file of testdata
			if err != nil {
				t.Fatal(err)
			}
			var spec v1alpha2.NginxOperatorSpec
			line, _, _ := strings.Cut(string(raw), "\n")
			if declared, ok := strings.CutPrefix(line, "# spec: "); ok {
				if err := json.Unmarshal([]byte(declared), &spec); err != nil {
					t.Fatal(err)
				}
			}
			if problems, _ := check(spec, string(raw)); len(problems) > 0 {
				t.Error(problems)
			}
			spec.Config = &v1alpha2.Config{Inline: string(raw)}
			assertParses(t, &spec)
		})
	}
}

func TestDefaultServersParse(t *testing.T) {
	assertParses(t, &v1alpha2.NginxOperatorSpec{TLS: []v1alpha2.TLS{{SecretName: "shop"}}})
}

// assertParses fails the test unless crossplane's strictest parser accepts the rendered files.
func assertParses(t *testing.T, spec *v1alpha2.NginxOperatorSpec) {
	t.Helper()
	files, err := Render(spec, Whole(ptr.Deref(spec.Config, v1alpha2.Config{}).Inline), true, nil)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for file, text := range files {
		text = strings.ReplaceAll(strings.ReplaceAll(text, Directory, dir), "include /etc/nginx/", "#")
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	payload, err := crossplane.Parse(filepath.Join(dir, MainFile), &crossplane.ParseOptions{
		ErrorOnUnknownDirectives: true, DirectiveSources: []crossplane.MatchFunc{crossplane.MatchOssLatest, matchNewer},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(payload.Errors) > 0 || len(payload.Config) != len(files) {
		t.Errorf("%d files parsed, %d rendered: %+v", len(payload.Config), len(files), payload.Errors)
	}
}
