package nginxconf

import (
	"fmt"
	"strings"
	"testing"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/pkg/bounds/boundstest"
)

// includedCases are configurations that include files.
func includedCases() map[string]checked {
	const include = "include /etc/nginx/files/a.conf;"
	tests := map[string]checked{
		"nothing wrong": {text: inServer(include), texts: map[string]string{"a.conf": "add_header A b;"}},
		"not known":     {text: include},
		"listens":       {text: include, texts: map[string]string{"a.conf": "server { listen 8080; }"}},
		"by a mask": {
			text: "include /etc/nginx/files/*.conf;", texts: map[string]string{"a.conf": "server { listen 8080; }", "b.conf": ""},
		},
		"one of several masked": {
			text: "include /etc/nginx/files/*.conf;", texts: map[string]string{"a.conf": ""},
		},
		"listens nowhere": {text: include, texts: map[string]string{"a.conf": "# nothing"}},
		"error in a file, reported once": {
			text: inServer(include) + "server { listen 8080; server_name a;\n" + include + "}\nlisten 80;\n",
			texts: map[string]string{
				"a.conf": "\nproxy_pas b;\n",
			},
		},
		"file that does not parse": {text: inServer(include), texts: map[string]string{"a.conf": "root /tmp"}},
		"directive in the wrong place": {
			text: inServer(include), texts: map[string]string{"a.conf": "upstream a { server 127.0.0.1; }"},
		},
		"file of a file": {
			text:  inServer(include),
			texts: map[string]string{"a.conf": "include /etc/nginx/files/b.conf;", "b.conf": "ssl_dhparam /etc/nginx/files/none;"},
		},
		"file in a map of a file": {
			text: inHTTP(include), texts: map[string]string{"a.conf": "map $uri $a {\ninclude /etc/nginx/files/none;\n}"},
		},
		"map": {
			text: inHTTP("map $uri $a { include /etc/nginx/files/*.conf; }"), texts: map[string]string{
				"a.conf": "default 0;\n~^/p/\\d{4}$ 1;", "b.conf": "/a 1;\n/b 2\n/c 3;\n",
			},
		},
		"end of a map": {
			text: inHTTP("geo $a { include /etc/nginx/files/a.conf; }"), texts: map[string]string{"a.conf": "10.0.0.0/8 1"},
		},
		"block in a map": {
			text: inHTTP("map $uri $a { include /etc/nginx/files/a.conf; }"), texts: map[string]string{"a.conf": "\n/a { b c; }"},
		},
		"map of a file of a map": {
			text:  inHTTP("map $uri $a { include /etc/nginx/files/a.conf; }"),
			texts: map[string]string{"a.conf": "include /etc/nginx/files/b.conf;", "b.conf": "/a b c;"},
		},
		"cycle of a map": {
			text:  inHTTP("map $uri $a { include /etc/nginx/files/a.conf; }"),
			texts: map[string]string{"a.conf": "include /etc/nginx/files/a.conf;"},
		},
		"right maps": {
			text: inHTTP(
				"map $uri $a { hostnames; include /etc/nginx/files/a.conf; }", "types { include /etc/nginx/files/b.conf; }",
				"geo $b { ranges; 10.0.0.0-10.0.0.9 1; }",
			), texts: map[string]string{
				"a.conf": "\"~^/p/\\d{4}$\" a;\nserver listen;\ninclude b;\n# c d e\n'a b' \"{}\";", "b.conf": "text/html html htm shtml;",
			},
		},
		"map of an unknown file": {text: inHTTP("map $uri $a { include /etc/nginx/files/a.conf; }")},
		"cycle": {
			text:  inServer(include),
			texts: map[string]string{"a.conf": "include /etc/nginx/files/b.conf;", "b.conf": "\n" + include},
		},
		"defaults of the operator": {
			text: inHTTP(include), texts: map[string]string{"a.conf": "server_tokens on;\ngzip on;"},
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
	return tests
}

// TestOwnDefaults verifies that ownDefaults lists directives that the operator adds to the http
// context. nginx rejects a duplicate of these directives.
func TestOwnDefaults(t *testing.T) {
	files, err := Render(&v1alpha2.NginxOperatorSpec{}, Whole("server { listen 8080; }"), false, nil)
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
				boundstest.Cheap(t, func() { Check(&spec, Whole(text), texts, nil) })
			})
		}
	}
}
