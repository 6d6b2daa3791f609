package nginxconf

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/fixture"
	"github.com/example/nginx-operator/test/golden"
)

// tables are all cases, by topic.
func tables() []map[string]checked {
	return []map[string]checked{
		refusedConfigurations, semicolons, warned, admitted, fileCases(), cacheCases(), includedCases(), volumeCases(), patchCases(),
		outerCases(), valueCases(),
	}
}

// TestMessages compares the problems and the warnings of all cases with golden files, which
// reviewers read as one text. The names of the cases without a finding are at the end.
func TestMessages(t *testing.T) {
	var refused, accepted strings.Builder
	var silent []string
	for _, cases := range tables() {
		for _, name := range slices.Sorted(maps.Keys(cases)) {
			problems, warnings := cases[name].check()
			switch {
			case len(problems) > 0:
				write(t, &refused, name, cases[name], problems, warnings)
			case len(warnings) > 0:
				write(t, &accepted, name, cases[name], nil, warnings)
			default:
				silent = append(silent, name)
			}
		}
	}

	fmt.Fprintf(&accepted, "Without a finding:\n  %s\n", strings.Join(silent, "\n  "))
	fixture.Golden(t, "messages.txt", refused.String())
	fixture.Golden(t, "warnings.txt", accepted.String())
}

// write writes a case: its spec, its text, its files, and its findings.
func write(t *testing.T, to *strings.Builder, name string, test checked, problems, warnings []string) {
	t.Helper()
	fmt.Fprintf(to, "%s:\n", name)
	spec, err := json.Marshal(test.spec)
	if err != nil {
		t.Fatal(err)
	}
	if string(spec) != "{}" {
		fmt.Fprintf(to, "    # %s\n", spec)
	}

	writeText(to, test.text)
	for _, file := range slices.Sorted(maps.Keys(test.texts)) {
		fmt.Fprintf(to, "    # %s:\n", file)
		writeText(to, test.texts[file])
	}

	for _, problem := range problems {
		fmt.Fprintf(to, "  refused: %s\n", problem)
	}
	for _, warning := range warnings {
		fmt.Fprintf(to, "  warning: %s\n", warning)
	}
	to.WriteString("\n")
}

// writeText writes the beginning of a text.
func writeText(to *strings.Builder, text string) {
	const maxText = 700
	if len(text) > maxText {
		text = text[:maxText/14] + " ..."
	}
	for line := range strings.Lines(text) {
		fmt.Fprintf(to, "    %s\n", strings.TrimRight(line, "\r\n "))
	}
}

// TestMessagesAreGolden verifies that a golden file has each message.
func TestMessagesAreGolden(t *testing.T) {
	golden.Messages(t, map[string]string{
		"the operator failed to check this configuration (a defect). Please report it: …": "no known configuration causes a panic",
		"spec.nginx.resolver: the name servers of the cluster are unknown: the operator's /etc/resolv.conf is not that of a Pod " +
			"with dnsPolicy ClusterFirst; set addresses, or the operator's flag --cluster-nameservers": "internal/resolve has it",
	}, "testdata/messages.txt", "testdata/warnings.txt")
}

// semicolons are configurations with a line that has no semicolon at its end, or seems to have none.
var semicolons = map[string]checked{
	"listen without a semicolon":      {text: "server {\n  listen 8080\n  server_name shop.example.com;\n}"},
	"listen before a location":        {text: "server {\n  listen 8080\n\n  location / {\n    return 204;\n  }\n}"},
	"listen before a switch":          {text: "server {\n  listen 8080\n  http2 on;\n}"},
	"listen of two, each without one": {text: "server {\n  listen 8080\n  listen [::]:8080\n  root /tmp;\n}"},
	"argument without a semicolon":    {text: inServer("root /tmp", "index a;")},
	"three without a semicolon":       {text: inServer("root /tmp", "index a", "gzip on", "etag off;")},
	"unknown name after a line":       {text: inServer("root /tmp", "indx a;")},
	"name before a location":          {text: inServer("server_name a.example.com", "location / {", "root /a;", "}")},
	"listen read as a name":           {text: "server {\n  server_name a.example.com\n  listen 8080;\n}"},
	"directive read as a name":        {text: inServer("server_name a.example.com", "root /tmp;")},
	"URL without a semicolon":         {text: inServer("location / {", "proxy_pass http://127.0.0.1", "proxy_set_header Host $host;", "}")},
	"unknown variable of a line":      {text: inServer("set $a b", "c;")},

	// These are right.
	"parameters in lines":    {text: "server {\n  listen 8080\n    default_server\n    http2\n    backlog=10;\n}", spec: old()},
	"names in lines":         {text: inServer("server_name", "a.example.com", "internal", "root", "index;")},
	"index in lines":         {text: inServer("index", "index.html", "index;")},
	"values in lines":        {text: inServer("add_header A", "root", "always;", `return 200`, "index;")},
	"format in lines":        {text: inHTTP("log_format a '$status '", "'root'", "'$uri';")},
	"quoted name in lines":   {text: inServer("server_name a", `"root" b;`)},
	"entries like directive": {text: inHTTP("map $uri $a {", "root 1;", "index", "listen;", "}")},
}

func old() v1alpha2.NginxOperatorSpec { return v1alpha2.NginxOperatorSpec{Image: "nginx:1.24.0"} }
