package nginxconf

import (
	"fmt"
	"strings"
	"testing"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/pkg/bounds/boundstest"
)

func TestIncludedFiles(t *testing.T) {
	const include = "include /etc/nginx/files/a.conf;"
	unseen := []string{
		"listen: port 8080 (the default of spec.ports): no server in the text listens on it; be sure that an included file does",
	}
	tests := map[string]checked{
		"nothing wrong": {text: inServer(include), texts: map[string]string{"a.conf": "add_header A b;"}},
		"not known":     {text: include, warnings: unseen},
		"listens":       {text: include, texts: map[string]string{"a.conf": "server { listen 8080; }"}},
		"by a mask": {
			text: "include /etc/nginx/files/*.conf;", texts: map[string]string{"a.conf": "server { listen 8080; }", "b.conf": ""},
		},
		"one of several masked": {
			text: "include /etc/nginx/files/*.conf;", texts: map[string]string{"a.conf": ""}, warnings: unseen,
		},
		"listens nowhere": {text: include, texts: map[string]string{"a.conf": "# nothing"}, want: []string{
			"listen: port 8080 (the default of spec.ports): no server listens on it; add `listen 8080;` to a server, " +
				"or declare the ports that the servers listen on",
		}},
		"error in a file, told once": {
			text: inServer(include) + "server { listen 8080; server_name a;\n" + include + "}\nlisten 80;\n",
			texts: map[string]string{
				"a.conf": "\nproxy_pas b;\n",
			}, want: []string{
				"line 6: listen: not allowed here; it is allowed in a server block",
				"/etc/nginx/files/a.conf, line 2: proxy_pas: nginx does not know it; correct the name, " +
					"or set spec.image to an image that has its module compiled in",
			},
		},
		"file that does not parse": {text: inServer(include), texts: map[string]string{"a.conf": "root /tmp"}, want: []string{
			"/etc/nginx/files/a.conf, line 1: root: the text ends before the directive does; end it with \";\" and close every quote",
		}},
		"directive in the wrong place": {
			text: inServer(include), texts: map[string]string{"a.conf": "upstream a { server 127.0.0.1; }"}, want: []string{
				"/etc/nginx/files/a.conf, line 1: upstream: not allowed here; it is allowed outside of all blocks",
			},
		},
		"file of a file": {
			text:  inServer(include),
			texts: map[string]string{"a.conf": "include /etc/nginx/files/b.conf;", "b.conf": "ssl_dhparam /etc/nginx/files/none;"},
			want: []string{
				"/etc/nginx/files/b.conf, line 1: ssl_dhparam: /etc/nginx/files/none is not among spec.files; add `- path: none` there, " +
					"with a configMapRef or a secretRef",
			},
		},
		"file in a map of a file": {
			text: inHTTP(include), texts: map[string]string{"a.conf": "map $uri $a {\ninclude /etc/nginx/files/none;\n}"}, want: []string{
				"/etc/nginx/files/a.conf, line 2: include: /etc/nginx/files/none is not among spec.files; add `- path: none` there, " +
					"with a configMapRef or a secretRef",
			},
		},
		"map": {
			text: inHTTP("map $uri $a { include /etc/nginx/files/*.conf; }"), texts: map[string]string{
				"a.conf": "default 0;\n~^/p/\\d{4}$ 1;", "b.conf": "/a 1;\n/b 2\n/c 3;\n",
			}, want: []string{
				"/etc/nginx/files/a.conf, line 2: ~^/p/\\d: a regular expression with braces has to be in quotes",
				"/etc/nginx/files/b.conf, line 2: /b: an entry of a map block has two words, not 4; a semicolon may be missing at the end of a line",
			},
		},
		"end of a map": {
			text: inHTTP("geo $a { include /etc/nginx/files/a.conf; }"), texts: map[string]string{"a.conf": "10.0.0.0/8 1"}, want: []string{
				"/etc/nginx/files/a.conf, line 1: 10.0.0.0/8: the text ends before the directive does; end it with \";\" and close every quote",
			},
		},
		"block in a map": {
			text: inHTTP("map $uri $a { include /etc/nginx/files/a.conf; }"), texts: map[string]string{"a.conf": "\n/a { b c; }"}, want: []string{
				"/etc/nginx/files/a.conf, line 2: /a: unexpected \"{\" in a map block; put a regular expression or a text with braces in quotes",
			},
		},
		"map of a file of a map": {
			text:  inHTTP("map $uri $a { include /etc/nginx/files/a.conf; }"),
			texts: map[string]string{"a.conf": "include /etc/nginx/files/b.conf;", "b.conf": "/a b c;"}, want: []string{
				"/etc/nginx/files/b.conf, line 1: /a: an entry of a map block has two words, not 3; a semicolon may be missing at the end of a line",
			},
		},
		"circle of a map": {
			text:  inHTTP("map $uri $a { include /etc/nginx/files/a.conf; }"),
			texts: map[string]string{"a.conf": "include /etc/nginx/files/a.conf;"},
			want:  []string{"/etc/nginx/files/a.conf, line 1: include: the file includes itself; remove it"},
		},
		"right maps": {
			text: inHTTP(
				"map $uri $a { hostnames; include /etc/nginx/files/a.conf; }", "types { include /etc/nginx/files/b.conf; }",
				"geo $b { ranges; 10.0.0.0-10.0.0.9 1; }",
			), texts: map[string]string{
				"a.conf": "\"~^/p/\\d{4}$\" a;\nserver listen;\ninclude b;\n# c d e\n'a b' \"{}\";", "b.conf": "text/html html htm shtml;",
			}, want: []string{
				"/etc/nginx/files/a.conf, line 3: include: nginx looks for b in /etc/nginx-operator, where it does not exist; put its text here",
			},
		},
		"map of an unknown file": {text: inHTTP("map $uri $a { include /etc/nginx/files/a.conf; }")},
		"circle": {
			text:  inServer(include),
			texts: map[string]string{"a.conf": "include /etc/nginx/files/b.conf;", "b.conf": "\n" + include},
			want:  []string{"/etc/nginx/files/b.conf, line 2: include: the file includes itself; remove it"},
		},
		"defaults of the operator": {
			text: inHTTP(include), texts: map[string]string{"a.conf": "server_tokens on;\ngzip on;"}, want: []string{
				"/etc/nginx/files/a.conf, line 1: server_tokens: outside of all blocks the operator sets it as well, unless spec.config itself does; " +
					"write it there",
			},
		},
		"no defaults of the operator": {text: inServer(include), texts: map[string]string{"a.conf": "server_tokens on;"}},
		// Files that exceed the bounds of a configuration are left to nginx.
		"too many entries": {
			text:  inHTTP("map $uri $a { include /etc/nginx/files/a.conf; }"),
			texts: map[string]string{"a.conf": strings.Repeat("a b;\n", maxDirectives+1) + "a b c;"},
		},
		"too many bytes": {
			text:  inHTTP("map $uri $a { include /etc/nginx/files/a.conf; }"),
			texts: map[string]string{"a.conf": "a b;#" + strings.Repeat("-", MaxBytes) + "\na b c;"},
		},
	}
	for name, test := range tests {
		test.spec = withFiles("a.conf", "b.conf")
		tests[name] = test
	}
	testChecks(t, tests)
}

// TestOwnDefaults verifies that ownDefaults lists directives that the operator adds to the http
// context. nginx rejects a duplicate of these directives.
func TestOwnDefaults(t *testing.T) {
	files, err := Render(&v1alpha2.NginxOperatorSpec{}, "server { listen 8080; }", false)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range ownDefaults {
		if !strings.Contains(files[MainFile], "\n    "+name+" ") {
			t.Errorf("the operator does not set %s", name)
		}
	}
}

// TestIncludesAreCheap verifies that the checker reads no more than the bounds of one
// configuration, however often files include each other.
func TestIncludesAreCheap(t *testing.T) {
	var paths []string
	known := map[string]string{}
	for i := range 16 {
		file := fmt.Sprintf("%d.conf", i)
		paths = append(paths, file)
		known[file] = strings.Repeat(fmt.Sprintf("include /etc/nginx/files/%d.conf;\n", i+1), 1_000)
	}
	wide := map[string]string{"0.conf": strings.Repeat("gzip on;\n", 50_000)}
	empty := map[string]string{"0.conf": ""}
	text := inServer(strings.Repeat("include /etc/nginx/files/0.conf;\n", 25_000))
	spec := withFiles(paths...)
	entries := inHTTP("map $uri $a {" + strings.Repeat("include /etc/nginx/files/0.conf;\n", 25_000) + "}")
	for name, texts := range map[string]map[string]string{"deep": known, "wide": wide, "empty": empty} {
		for place, text := range map[string]string{"server": text, "map": entries} {
			t.Run(name+" in a "+place, func(t *testing.T) {
				boundstest.Cheap(t, func() { Check(&spec, text, texts, nil) })
			})
		}
	}
}
