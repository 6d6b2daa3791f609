package nginxconf

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	crossplane "github.com/nginxinc/nginx-go-crossplane"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// example is a realistic configuration with its spec.
type example struct {
	spec v1alpha2.NginxOperatorSpec
	text string
}

// examples returns configurations that nginx 1.30 accepts. nginx 1.28 accepts all except newest.
// The first line of a file can have its spec.
func examples(t *testing.T) map[string]example {
	t.Helper()
	files, err := filepath.Glob("testdata/valid/*.conf")
	if err != nil || len(files) < 15 {
		t.Fatalf("%d examples: %v", len(files), err)
	}
	out := map[string]example{}
	for _, file := range files {
		raw, err := os.ReadFile(file) //nolint:gosec // a file of testdata
		if err != nil {
			t.Fatal(err)
		}
		e := example{text: string(raw)}
		line, _, _ := strings.Cut(e.text, "\n")
		if spec, ok := strings.CutPrefix(line, "# spec: "); ok {
			if err := json.Unmarshal([]byte(spec), &e.spec); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
		}
		e.spec.Config = &v1alpha2.Config{Inline: e.text}
		out[strings.TrimSuffix(filepath.Base(file), ".conf")] = e
	}
	return out
}

// TestExamples verifies that examples are accepted, and that crossplane's strictest parser accepts
// the rendered files.
func TestExamples(t *testing.T) {
	all := examples(t)
	all["default"] = example{spec: v1alpha2.NginxOperatorSpec{TLS: []v1alpha2.TLS{{SecretName: "shop"}}}}
	for name, e := range all {
		t.Run(name, func(t *testing.T) {
			if problems, _ := Check(&e.spec, e.text, nil, nil); e.text != "" && len(problems) > 0 {
				t.Error(problems)
			}
			files, err := Render(&e.spec, e.text, true)
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			for file, text := range files {
				text = strings.ReplaceAll(text, Directory, dir)
				text = strings.ReplaceAll(text, "include /etc/nginx/", "#")
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
			for _, failure := range payload.Errors {
				t.Error(failure.Error)
			}
			if len(payload.Config) != len(files) {
				t.Errorf("%d files parsed, %d rendered", len(payload.Config), len(files))
			}
		})
	}
}
