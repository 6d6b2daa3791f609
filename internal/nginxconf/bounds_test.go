//go:build unix

package nginxconf

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/pkg/bounds/boundstest"
)

// hostile returns texts of the maximum size that are expensive for parsers.
func hostile() map[string]string {
	many := func(text string) string { return strings.Repeat(text, (MaxBytes-64<<10)/len(text)) }
	nested := func(name string, depth int) string {
		return strings.Repeat(name+"{", depth) + strings.Repeat("}", depth)
	}
	name := strings.Repeat("a", 4000)
	bounded := func(text string) string { return strings.Repeat(text, maxDirectives-10) }
	long := strings.Repeat("$", maxWord)
	sets := strings.Repeat("set $a b;", maxDirectives-100)
	return map[string]string{
		"deep":                       nested("a", 340_000),
		"deep and open":              many("a{"),
		"long names around many":     strings.Repeat(name+"{", 100) + strings.Repeat("a;", 250_000) + strings.Repeat("}", 100),
		"long names, as deep as may": strings.Repeat(name+"{", maxDepth) + bounded("a;") + strings.Repeat("}", maxDepth),
		"flat":                       many("a;"),
		"flat, as many as may":       bounded("a;"),
		"locations, as deep as may": "server {" +
			strings.Repeat("location / {", maxDepth-1) + bounded("proxy_pass $a;") + strings.Repeat("}", maxDepth),
		"if without a condition":  "server { if () { } }",
		"if with nothing":         "server { if { } }",
		"if with one parenthesis": "server { if ( { } }",
		"one word":                many("x"),
		"one word in quotes":      `"` + many("x") + `"`,
		"words without an end":    many("a "),
		"words of one directive":  many("a ") + ";",
		"words, as many as may":   "server_name" + strings.Repeat(" a", maxWords-2) + ";",
		"long words":              many("a " + long + ";"),
		"escapes":                 many(`"\\\\";`),
		"backslashes":             many(`\`),
		"quotes":                  many(`"" `),
		"braces":                  many("{"),
		"closed braces":           many("}"),
		"semicolons":              many(";"),
		"comments":                many("#\n"),
		"variables":               many("${"),
		"blank lines":             many("\n"),
		"lua":                     "content_by_lua_block {" + many("{}") + "}",
		"lua, open":               "content_by_lua_block {" + many("{"),
		"lua, many":               many("a_by_lua_block {}"),
		"lua, long brackets":      "a_by_lua_block {" + many("[="),
		"lua, comments":           "a_by_lua_block {" + many("--"),
		"lua, strings":            "a_by_lua_block {" + many(`"\\`),
		"set_by_lua":              "set_by_lua_block " + many("$") + " {}",
		"listens":                 "server {" + bounded("listen 8080 ssl;") + "}",
		"ranges of listens":       "server {" + bounded("listen 1-65535;") + "}",
		"options of a listen":     "server { listen 8080" + strings.Repeat(" a", maxWords-10) + "; }",
		"listens of servers":      bounded("server{}"),
		"includes":                bounded("include a;"),
		"logs":                    bounded("access_log /a;"),
		"unknown names":           bounded("proxy_pas a;"),
		"rewrites that go on":     "server {" + strings.Repeat("rewrite a "+strings.Repeat("?", 4000)+";", 20) + sets + "}",
		"rewrites with captures": "server {" +
			many("rewrite "+strings.Repeat("(", 2000)+strings.Repeat(")", 2000)+" a?$1$2$3$4$5$6$7$8$9;") + "}",
		"rewrites with classes": "server {" + many("rewrite (("+strings.Repeat("[", 4000)+" a?$1$2$3;") + "}",
		"short rewrites":        "server {" + many("rewrite ((a)) a?$1$2;") + "}",
		"sets in ifs":           "server {" + strings.Repeat("if ($a) {", maxDepth-1) + sets + strings.Repeat("}", maxDepth),
		"values of URLs": "server {" + strings.Repeat("set $a "+strings.Repeat("$a", 1000)+"b;", 16) +
			"location / {" + bounded("proxy_pass $a;") + "} }",
		"URLs with a resolver elsewhere": "server { resolver a; } server { set $a b;" +
			strings.Repeat("location / {", maxDepth-1) + bounded("proxy_pass http://$a;") + strings.Repeat("}", maxDepth),
		"many names of servers": "server { location / {" + many("proxy_pass http://a$uri;") + "} }",
		"maps":                  many("map $uri $x { a b; a { b; } include /etc/nginx/files/a; }"),
		"emoji":                 many("allow " + strings.Repeat("😀", 1000) + ";"),
		"entries":               "map $uri $x {" + bounded("a b;") + "}",
		"not UTF-8":             many("\xff\xfe;"),
		"NUL":                   many("\x00"),
	}
}

// hostileSpec returns a spec with many ports.
func hostileSpec(image string) *v1alpha2.NginxOperatorSpec {
	spec := &v1alpha2.NginxOperatorSpec{Image: image, Config: &v1alpha2.Config{}}
	for i := range int32(32) {
		spec.Ports = append(spec.Ports, v1alpha2.Port{Name: fmt.Sprintf("p%d", i), Port: 8080 + i})
		spec.TLS = append(spec.TLS, v1alpha2.TLS{SecretName: fmt.Sprintf("s%d", i), Port: ptr.To(9080 + i)})
	}
	return spec
}

func TestHostileTextsCostLittle(t *testing.T) {
	for name, text := range hostile() {
		t.Run(name, func(t *testing.T) {
			goroutines := runtime.NumGoroutine()
			problems, warnings := assertCheap(t, hostileSpec("registry.example.com/own:1"), text)
			if now := runtime.NumGoroutine(); now > goroutines {
				t.Errorf("%d goroutines, %d before", now, goroutines)
			}
			assertShort(t, problems)
			assertShort(t, warnings)
			boundstest.Cheap(t, func() {
				if listening := Listening(text); listening != nil {
					listening(8080)
				}
			})
		})
	}
}

// assertCheap checks a configuration, and fails the test if that exceeds the limits of time or
// memory.
func assertCheap(t *testing.T, spec *v1alpha2.NginxOperatorSpec, text string) (problems, warnings []Problem) {
	t.Helper()
	boundstest.Cheap(t, func() { problems, warnings = inspect(spec, text, nil, nil) })
	return problems, warnings
}

// assertShort fails the test unless the problems fit into a status.
func assertShort(t *testing.T, problems []Problem) {
	t.Helper()
	size := 0
	for _, problem := range problems {
		size += len(problem.String())
		if !utf8.ValidString(problem.String()) {
			t.Errorf("cut within a character: %q", problem)
		}
		if len(problem.Directive) > quotedBytes+3 || len(problem.String()) > 1024 {
			t.Errorf("%d bytes: %q", len(problem.String()), problem)
		}
	}
	if size > 8<<10 || len(problems) > shown+1 {
		t.Errorf("%d problems with %d bytes", len(problems), size)
	}
}

// TestManyAtOnce verifies that the number of concurrent checks is bounded.
func TestManyAtOnce(t *testing.T) {
	text, wait := hostile()["locations, as deep as may"], sync.WaitGroup{}
	for range 10 {
		wait.Go(func() {
			Check(hostileSpec(""), text)
			if busy := len(slots); busy > cap(slots) {
				t.Errorf("%d at once", busy)
			}
		})
	}
	wait.Wait()
	if len(slots) > 0 {
		t.Errorf("%d slots are not free", len(slots))
	}
}

func TestBounds(t *testing.T) {
	spec := v1alpha2.NginxOperatorSpec{Config: &v1alpha2.Config{}}
	for name, test := range map[string]struct{ text, want string }{
		"depth": {strings.Repeat("location / {\n", 33), "line 33: location: blocks may be nested 32 deep, " +
			"and this is one more; put what is in it into a block further out"},
		"directives": {
			strings.Repeat("a;", 50_001),
			"the configuration has 50001 directives and entries of maps, and may have 50000: " + splitRemedy,
		},
		"words": {
			"server_name" + strings.Repeat(" a", 200_000) + ";",
			"the configuration has 200001 words, and may have 200000: " + splitRemedy,
		},
	} {
		if got := texts(Check(&spec, test.text)); len(got) != 1 || got[0] != test.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestLargeConfigurations verifies that large realistic configurations are within the bounds.
func TestLargeConfigurations(t *testing.T) {
	spec := v1alpha2.NginxOperatorSpec{Config: &v1alpha2.Config{}}
	var redirects, servers strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&redirects, "  /old/path/%d /new/path/%d;\n", i, i)
	}
	for i := range 500 {
		fmt.Fprintf(&servers, "server {\n  listen 8080;\n  server_name host%d.example.com www.host%d.example.com;\n", i, i)
		for j := range 10 {
			fmt.Fprintf(&servers, "  location /%d/ {\n    proxy_pass http://127.0.0.1:3000;\n", j)
			servers.WriteString("    proxy_set_header Host $host;\n    proxy_read_timeout 5s;\n  }\n")
		}
		servers.WriteString("}\n")
	}
	for name, text := range map[string]string{
		"map": inHTTP("map $uri $new {", redirects.String(), "}"), "geo": inHTTP("geo $net {", strings.Repeat("192.0.2.1/32 1;\n", 40_000), "}"),
		"servers": servers.String(),
	} {
		if problems := Check(&spec, text); len(problems) > 0 {
			t.Errorf("%s, %d bytes: %v", name, len(text), problems)
		}
	}
}

// FuzzCheck fails for a text that causes a panic, or exceeds the limits of time or memory.
func FuzzCheck(f *testing.F) {
	for _, text := range hostile() {
		f.Add(text[:min(len(text), 10_000)], true)
	}
	for _, test := range refusedConfigurations {
		f.Add(test.text, false)
	}
	f.Fuzz(func(t *testing.T, text string, official bool) {
		image := ""
		if !official {
			image = "registry.example.com/own:1"
		}
		problems, warnings := assertCheap(t, hostileSpec(image), text)
		assertShort(t, problems)
		assertShort(t, warnings)
		for _, problem := range problems {
			if strings.Contains(problem.Message, "cannot be checked") {
				t.Error(problem)
			}
		}
	})
}
