package nginxconf

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	crossplane "github.com/nginxinc/nginx-go-crossplane"

	"github.com/example/nginx-operator/api/v1alpha2"
)

func TestReleaseOf(t *testing.T) {
	for image, want := range map[string]release{
		"": {certain: true, minor: 28},
		"docker.io/nginxinc/nginx-unprivileged:1.28.0":        {certain: true, minor: 28},
		"nginx:1.24-alpine@sha256:" + strings.Repeat("a", 64): {certain: true, minor: 24},
		"nginx:1.27.5-alpine3.21-perl":                        {certain: true, minor: 27},
		"library/nginx:1.26":                                  {certain: true, minor: 26},
		"nginx:1.28.0-brotli":                                 {},
		"registry.example.com/nginx:1.28.0":                   {},
		"registry.example.com/nginx:1.28.0-brotli":            {},
		"ghcr.io/nginxinc/nginx-unprivileged:1.28":            {},
		"nginx:1.29.1":                                        {minor: 29},
		"nginx:stable":                                        {},
		"nginx":                                               {},
		"quay.io/me/my-nginx:1.28.0":                          {},
		"openresty/openresty:1.27.1.2-alpine":                 {},
		"not an image":                                        {},
	} {
		got := releaseOf(image)
		if got.certain != want.certain || got.minor != want.minor {
			t.Errorf("%q: certain %v, minor %d", image, got.certain, got.minor)
		}
	}
}

// The bits of the parser's table are copied here, so its own verdicts have to be the same.
func TestBitsAreThoseOfTheParser(t *testing.T) {
	around := map[uint]string{
		contextHTTP: "http { %s }", contextServer: "http { server { %s } }", contextLocation: "http { server { location / { %s } } }",
		contextUpstream: "http { upstream u { %s } }", contextServerIf: "http { server { if ($a) { %s } } }",
		contextIf:    "http { server { location / { if ($a) { %s } } } }",
		contextLimit: "http { server { location / { limit_except GET { %s } } } }",
	}
	names := strings.Fields(`access_log add_header alias allow auth_request break gzip if index internal keepalive limit_except
		listen location log_format map proxy_buffers proxy_pass return rewrite server server_name set try_files types upstream
		geo multi_accept worker_rlimit_nofile zone proxy_cache_path`)
	for context, text := range around {
		for _, name := range names {
			for count := range 4 {
				for _, end := range []string{";", " { }"} {
					statement := name + strings.Repeat(" on", count) + end
					if name == "if" {
						statement = name + " (" + strings.Repeat(" on", count) + " on )" + end
					}
					parsed, problem := parse(statement)
					if problem != nil {
						t.Fatal(statement, problem)
					}
					parsed[0].context = context
					c := &checker{spec: &v1alpha2.NginxOperatorSpec{}, release: releaseOf("")}
					got := c.checkPlace(parsed[0])
					if want := parserTakes(t, fmt.Sprintf(text, statement)); got != want {
						t.Errorf("%s in %s: %v, the parser says %v", statement, text, c.problems.kept, want)
					}
				}
			}
		}
	}
}

func parserTakes(t *testing.T, text string) bool {
	t.Helper()
	payload, err := crossplane.Parse(MainFile, &crossplane.ParseOptions{
		Open:                     func(string) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil },
		DirectiveSources:         []crossplane.MatchFunc{crossplane.MatchOssLatest},
		ErrorOnUnknownDirectives: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	return len(payload.Errors) == 0
}

// An image that somebody has built may have modules that nobody knows of: what is unknown there is told and not refused.
func TestImagesOfOthers(t *testing.T) {
	spec := &v1alpha2.NginxOperatorSpec{Image: "quay.io/me/my-nginx:1", Config: &v1alpha2.Config{}}
	text := inServer(
		`more_set_headers "X-Served-By: me";`,
		"location / {", "content_by_lua_block {", `  if x == "{" then ngx.say("}") end`, "}", "}",
		"frobnicate on;", "include /etc/nginx/snippets/ours.conf;", "limit_req zone=theirs;", "set $x $theirs;",
		"satisfy most;", "http3 off;", "root /a;", "root /b;",
	)
	if problems := Check(spec, text); len(problems) > 0 {
		t.Error(problems)
	}
	if diff := cmp.Diff([]string{
		"line 8: frobnicate: nginx does not know it; correct the name, or set spec.image to an image that has its module compiled in",
		"line 9: include: /etc/nginx/snippets/ours.conf is in the image, so that it is not checked before nginx reads it",
	}, texts(Warnings(spec, text, nil))); diff != "" {
		t.Error(diff)
	}
}

func texts(problems []Problem) []string {
	var out []string
	for _, problem := range problems {
		out = append(out, problem.String())
	}
	return out
}
