package nginxlog

import (
	"strings"
	"testing"
)

// TestTellingLine verifies the line that is found, and that it is found again in the result.
func TestTellingLine(t *testing.T) {
	t.Parallel()
	// nginx 1.26 logs these lines if the receiver of request metrics does not run.
	const syslog = "2026/01/01 00:00:00 [error] 1#1: send() failed (111: Connection refused) while logging to syslog, " +
		"server: 127.0.0.1:9514\n" +
		"2026/01/01 00:00:00 [warn] 1#1: *1 send() to syslog failed while logging request, client: 192.0.2.1, server: a, " +
		"request: \"GET /[emerg] HTTP/1.1\", host: \"a\"\n"
	for log, want := range map[string]string{
		"":                      "",
		"first\n  last \n":      "last",
		"first\n   then\nlast":  "last",
		"nginx: [emerg] a\nend": "[emerg] a",
		"2026/01/01 00:00:00 [emerg] 1#1: unknown directive\nend": "[emerg] unknown directive",
		"2026/01/01 00:00:00 [warn] 1#1: a":                       "[warn] a",
		syslog + "cause\n" + syslog:                               "cause",
		syslog:                                                    "",
		"a\nx " + syslog[strings.Index(syslog, "\n")+1:]: "x 2026/01/01 00:00:00 [warn] 1#1: *1 send() to syslog failed while logging " +
			"request, client: 192.0.2.1, server: a, request: \"GET /[emerg] HTTP/1.1\", host: \"a\"",
		" x [emerg] y\nend":            "x [emerg] y",
		strings.Repeat("x", 600):       strings.Repeat("x", 512) + "…",
		strings.Repeat("x", 511) + "é": strings.Repeat("x", 511) + "…",
	} {
		got := TellingLine(log)
		if got != want || TellingLine(got) != got {
			t.Errorf("%q: got %q and then %q, want %q", log, got, TellingLine(got), want)
		}
	}
}
