package nginxconf

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	crossplane "github.com/nginxinc/nginx-go-crossplane"

	"github.com/example/nginx-operator/api/v1alpha2"
)

func TestReleaseOf(t *testing.T) {
	unknown := release{patch: unknownPatch}
	for image, want := range map[string]release{
		"": {certain: true, minor: 30, patch: 7},
		"docker.io/nginxinc/nginx-unprivileged:1.28.0":        {certain: true, minor: 28, patch: 0},
		"nginx:1.24-alpine@sha256:" + strings.Repeat("a", 64): {certain: true, minor: 24, patch: unknownPatch},
		"nginx:1.27.5-alpine3.21-perl":                        {certain: true, minor: 27, patch: 5},
		"nginx:1.30.4-alpine-otel":                            {certain: true, minor: 30, patch: 4},
		"library/nginx:1.26":                                  {certain: true, minor: 26, patch: unknownPatch},
		"nginx:1.31.4":                                        {certain: true, minor: 31, patch: 4},
		"nginx:1.31.5":                                        {minor: 31, patch: 5},
		"nginx:1.31":                                          {minor: 31, patch: unknownPatch},
		"nginx:1.32.1":                                        {minor: 32, patch: 1},
		"nginx:1.28.0-brotli":                                 unknown,
		"registry.example.com/nginx:1.28.0":                   {minor: 28, patch: 0, guessed: true},
		"registry.example.com/nginx:v1.28.0-brotli":           {minor: 28, patch: 0, guessed: true},
		"ghcr.io/nginxinc/nginx-unprivileged:1.28":            {minor: 28, patch: unknownPatch, guessed: true},
		"registry.example.com/nginx:1.2":                      {minor: 2, patch: unknownPatch, guessed: true},
		"registry.example.com/nginx:1.285":                    unknown,
		"nginx:stable":                                        unknown,
		"nginx":                                               unknown,
		"quay.io/me/my-nginx:1.28.0":                          {minor: 28, patch: 0, guessed: true},
		"quay.io/nginx/shop:1.28.0":                           unknown,
		"openresty/openresty:1.27.1.2-alpine":                 unknown,
		"not an image":                                        unknown,
	} {
		if got := releaseOf(image); got != want {
			t.Errorf("%q: %+v, want %+v", image, got, want)
		}
	}
}

// TestDefaultIsThatOfTheRelease verifies that admission assumes the nginx version of the release's
// default image for an instance without an image.
func TestDefaultIsThatOfTheRelease(t *testing.T) {
	manifest, err := os.ReadFile("../../config/manager/manager.yaml")
	if err != nil {
		t.Fatal(err)
	}
	pinned := regexp.MustCompile(`docker.io/nginxinc/nginx-unprivileged:\S+`).FindAllString(string(manifest), -1)
	if len(pinned) != 1 || releaseOf(pinned[0]) != releaseOf("") {
		t.Errorf("the release pins %v, admission assumes %+v", pinned, releaseOf(""))
	}
	for _, fixed := range []vulnerability{questionMark, overlappingCaptures} {
		if fixed.warning(releaseOf("")) != "" {
			t.Errorf("the default image has %s", fixed.id)
		}
	}
}

// TestBitsAreThoseOfTheParser verifies that the checker, whose masks.go copies the bits of
// crossplane's tables, has the same results as crossplane.
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
					c := &checker{release: releaseOf("")}
					isValid := c.checkPlace(parsed[0])
					if want := parserTakes(t, fmt.Sprintf(text, statement)); isValid != want {
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
		DirectiveSources:         []crossplane.MatchFunc{crossplane.MatchOssLatest, matchNewer},
		ErrorOnUnknownDirectives: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	return len(payload.Errors) == 0
}

// TestNewerDirectives verifies that directives newer than nginx 1.28 are known in their contexts
// for every image. nginx itself rejects directives that its version lacks.
func TestNewerDirectives(t *testing.T) {
	for _, image := range []string{"", "nginx:1.30.4", "nginx:1.31.4", "nginx:1.28.3"} {
		spec := v1alpha2.NginxOperatorSpec{Image: image}
		problems, warnings := check(spec, "upstream u { least_time header inflight; server 127.0.0.1:1;\n"+
			"sticky cookie id; keepalive 16 local; }\n"+
			inServer("tunnel_pass;", "max_headers 10;", "early_hints 1;", "proxy_socket_sndbuf 1k;",
				"location / { if ($host = a) { add_header_inherit off; } }"))
		if len(problems)+len(warnings) > 0 {
			t.Error(image, problems, warnings)
		}
		for directive, want := range map[string]string{
			"sticky cookie a;":            `line 2: "sticky" directive is not allowed here. Move it into an upstream block`,
			"location / {max_headers 1;}": `line 2: "max_headers" directive is not allowed here. Move it out of all blocks, or into a server block`,
			"early_hints;":                `line 2: invalid number of arguments in "early_hints" directive: it takes 1 or more, and has 0`,
			"xml_external_entities on;": `line 2: unknown directive "xml_external_entities". ` +
				"Add ngx_http_xslt_filter_module to spec.nginx.modules",
		} {
			problems, _ := check(spec, inServer(directive))
			if diff := cmp.Diff([]string{want}, problems); diff != "" {
				t.Error(image, diff)
			}
		}
	}
}
