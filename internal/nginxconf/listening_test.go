package nginxconf

import (
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
	}
}
