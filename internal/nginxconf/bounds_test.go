//go:build unix

package nginxconf

import (
	"fmt"
	"strings"
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
		"if without a condition":          "server { if () { } }",
		"if with nothing":                 "server { if { } }",
		"if with one parenthesis":         "server { if ( { } }",
		"one word":                        many("x"),
		"one word in quotes":              `"` + many("x") + `"`,
		"words without an end":            many("a "),
		"words of one directive":          many("a ") + ";",
		"words, as many as may":           "server_name" + strings.Repeat(" a", maxWords-2) + ";",
		"words that look like directives": "server {" + strings.Repeat("listen 1\nhttp2\nssl\nroot;", maxWords/5) + "}",
		"lines without semicolons":        "server {" + strings.Repeat("gzip on\nroot /a\nlisten 1\n", maxWords/7) + ";}",
		"long words":                      many("a " + long + ";"),
		"escapes":                         many(`"\\\\";`),
		"backslashes":                     many(`\`),
		"quotes":                          many(`"" `),
		"braces":                          many("{"),
		"closed braces":                   many("}"),
		"semicolons":                      many(";"),
		"comments":                        many("#\n"),
		"variables":                       many("${"),
		"blank lines":                     many("\n"),
		"lua":                             "content_by_lua_block {" + many("{}") + "}",
		"lua, open":                       "content_by_lua_block {" + many("{"),
		"lua, many":                       many("a_by_lua_block {}"),
		"lua, long brackets":              "a_by_lua_block {" + many("[="),
		"lua, comments":                   "a_by_lua_block {" + many("--"),
		"lua, strings":                    "a_by_lua_block {" + many(`"\\`),
		"set_by_lua":                      "set_by_lua_block " + many("$") + " {}",
		"listens":                         "server {" + bounded("listen 8080 ssl;") + "}",
		"ranges of listens":               "server {" + bounded("listen 1-65535;") + "}",
		"options of a listen":             "server { listen 8080" + strings.Repeat(" a", maxWords-10) + "; }",
		"listens of servers":              bounded("server{}"),
		"includes":                        bounded("include a;"),
		"logs":                            bounded("access_log /a;"),
		"unknown names":                   bounded("proxy_pas a;"),
		"rewrites that go on":             "server {" + strings.Repeat("rewrite a "+strings.Repeat("?", 4000)+";", 20) + sets + "}",
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
			assertCheap(t, hostileSpec("registry.example.com/own:1"), text)
			boundstest.Cheap(t, func() {
				if listening := Listening(text); listening != nil {
					listening(8080)
				}
			})
		})
	}
}

// assertCheap fails the test if a check exceeds the limits of time or memory, or if its findings do
// not fit into a status.
func assertCheap(t *testing.T, spec *v1alpha2.NginxOperatorSpec, text string) (problems []Problem) {
	t.Helper()
	var warnings []Problem
	boundstest.Cheap(t, func() { problems, warnings = Check(spec, Whole(text), nil, nil) })
	for _, findings := range [][]Problem{problems, warnings} {
		size := 0
		for _, finding := range findings {
			size += len(finding.String())
			if !utf8.ValidString(finding.String()) {
				t.Errorf("cut within a character: %q", finding)
			}
			if len(finding.String()) > 1024 {
				t.Errorf("%d bytes: %q", len(finding.String()), finding)
			}
		}
		if size > 8<<10 || len(findings) > shown+1 {
			t.Errorf("%d findings with %d bytes", len(findings), size)
		}
	}
	return problems
}

// FuzzCheck fails for a text that causes a panic, or exceeds the limits of time or memory.
func FuzzCheck(f *testing.F) {
	for _, text := range hostile() {
		f.Add(text[:min(len(text), 10_000)], true)
	}
	for _, test := range refusedConfigurations {
		f.Add(test.text[:min(len(test.text), 10_000)], false)
	}
	f.Fuzz(func(t *testing.T, text string, official bool) {
		image := ""
		if !official {
			image = "registry.example.com/own:1"
		}
		for _, problem := range assertCheap(t, hostileSpec(image), text) {
			if strings.Contains(problem.Message, "(a defect)") {
				t.Error(problem)
			}
		}
	})
}
