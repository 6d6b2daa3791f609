package nginxconf

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/pkg/bounds/boundstest"
)

// TestRenderKeys verifies that each key of a mask is a file of its own, that nginx.conf includes the
// files in the order of the parts, and that a directive in any of them replaces the operator's.
func TestRenderKeys(t *testing.T) {
	parts := Servers{{"00-maps.conf", "map $a $b {}\n"}, {"10-http.conf", "sendfile off;\n"}, {"empty.conf", ""}}
	files, err := Render(&v1alpha2.NginxOperatorSpec{}, parts, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	const includes = `
    # The configuration of the NginxOperator.
    include /etc/nginx-operator/servers-00-maps.conf;
    include /etc/nginx-operator/servers-10-http.conf;
    include /etc/nginx-operator/servers-empty.conf;
}
`
	if !strings.HasSuffix(files[MainFile], includes) || strings.Contains(files[MainFile], "sendfile on") {
		t.Error(files[MainFile])
	}
	delete(files, MainFile)
	want := Files{"servers-00-maps.conf": parts[0].Text, "servers-10-http.conf": parts[1].Text, "servers-empty.conf": ""}
	if diff := cmp.Diff(want, files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	for file, key := range map[string]string{
		"/etc/nginx-operator/servers-a.conf": "a.conf", "/etc/nginx-operator/servers.conf": "", "/etc/nginx/servers-a.conf": "",
	} {
		if found := KeyOf(file); found != key {
			t.Errorf("%s: key %q, want %q", file, found, key)
		}
	}
}

// TestCheckKeys verifies that each finding has its key and the line in it, that the keys are one
// configuration, and that the bounds apply to all keys together.
func TestCheckKeys(t *testing.T) {
	const server = "server {\n    listen 8080;\n    %s\n}\n"
	spec := v1alpha2.NginxOperatorSpec{Files: []v1alpha2.File{{Path: "a.inc"}}, Content: &v1alpha2.Content{}}
	for name, test := range map[string]struct {
		servers Servers
		want    []string
	}{
		"valid": {Servers{{"a", "map $host $a {}\n"}, {"b", fmt.Sprintf(server, "root /usr/share/nginx/html;")}}, nil},
		"errors in two keys": {
			Servers{{"a", "\nserverr {}\n"}, {"b", fmt.Sprintf(server, "autoindex onn;")}},
			[]string{"a :2 unknown directive", "b :3 invalid value"},
		},
		"syntax errors in two keys": {
			Servers{{"a", "server {"}, {"b", "\n}"}}, []string{`a :1 unexpected end`, `b :2 unexpected "}"`},
		},
		"an entry of a map": {
			Servers{{"a", ""}, {"b", "map $host $a {\n  a b c;\n}\nserver { listen 8080; }"}},
			[]string{"b :2 invalid number"},
		},
		"an included file": {
			Servers{{"a", "include /etc/nginx/files/a.inc; server { listen 8080; }"}}, []string{" /etc/nginx/files/a.inc:2 unknown directive"},
		},
		"directives of all keys": {
			Servers{{"a", strings.Repeat("gzip on;", maxDirectives/2)}, {"b", strings.Repeat("gzip on;", maxDirectives/2+1)}},
			[]string{" :0 the configuration has 50001 directives"},
		},
		"bytes of all keys": {
			Servers{{"a", strings.Repeat("#", MaxBytes/2)}, {"b", strings.Repeat("#", MaxBytes/2+1)}},
			[]string{fmt.Sprintf(" :0 the configuration has %d bytes", MaxBytes+1)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			problems, _ := Check(&spec, test.servers, map[string]string{"a.inc": "\nlissten 1;"}, nil)
			matches := slices.EqualFunc(problems, test.want, func(problem Problem, want string) bool {
				return strings.HasPrefix(fmt.Sprintf("%s %s:%d %s", problem.Key, problem.File, problem.Line, problem.Message), want)
			})
			if !matches {
				t.Errorf("%+v, want %q", problems, test.want)
			}
		})
	}
}

// TestManyKeysAreCheap verifies that the work does not grow faster than the text.
func TestManyKeysAreCheap(t *testing.T) {
	var servers Servers
	for i := range 256 {
		servers = append(servers, Part{fmt.Sprint(i), strings.Repeat("gzip on;", 190)})
	}
	boundstest.Cheap(t, func() { Check(hostileSpec("registry.example.com/own:1"), servers, nil, nil) })
}
