package nginxconf

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestListening(t *testing.T) {
	for text, want := range map[string]map[int32]bool{
		"":                  {},
		"server { listen 8": nil,
		"server { listen 8080; listen [::]:8443 ssl; listen 127.0.0.1:9000; listen 8443 quic; listen unix:/a; }": {8080: false, 8443: true},
		"server { listen 80; } server { listen *:90-91 ssl; } upstream a { server b:81; }":                       {80: false, 90: true, 91: true},
		"map $host $a { listen 1; } include /a.conf; no_such_directive; server { listen 0.0.0.0; }":              {80: false},
	} {
		listening, got := Listening(text), map[int32]bool(nil)
		if listening != nil {
			got = map[int32]bool{}
			for port := range int32(10_000) {
				if listens, tls := listening(port); listens {
					got[port] = tls
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: -want +got:\n%s", text, diff)
		}
		ports := map[int32]bool{}
		for _, port := range Ports(text) {
			if ports[port] {
				t.Errorf("%q: port %d is listed twice", text, port)
			}
			_, ports[port] = got[port]
			if !ports[port] {
				t.Errorf("%q: port %d is listed", text, port)
			}
		}
		if len(ports) != len(got) {
			t.Errorf("%q: the ports are %v, want %v", text, ports, got)
		}
	}
}

// TestPortsAreBounded verifies that a range does not add thousands of ports.
func TestPortsAreBounded(t *testing.T) {
	ports := Ports("server { listen 9000; listen 1-65535; }")
	if len(ports) != maxListened || ports[0] != 9000 || ports[1] != 1 {
		t.Errorf("the ports are %v", ports)
	}
}

// TestSyntax verifies that the context of directives does not matter for the syntax.
func TestSyntax(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "",
		"events {} http { a b; }":           "",
		"events {":                          `line 1: unexpected end of file, expecting "}". The "events" block of line 1 has no "}"`,
		strings.Repeat(" ", MaxBytes) + ";": tooLarge(MaxBytes + 1).String(),
	} {
		got := ""
		if problem := Syntax(text); problem != nil {
			got = problem.String()
		}
		if got != want {
			t.Errorf("%.20q: got %q, want %q", text, got, want)
		}
	}
}
