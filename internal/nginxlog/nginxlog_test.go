package nginxlog

import (
	"strings"
	"testing"
)

// TestTellingLine verifies the line that is found, and that it is found again in the result.
func TestTellingLine(t *testing.T) {
	t.Parallel()
	for log, want := range map[string]string{
		"":                      "",
		"first\n  last \n":      "last",
		"first\n   then\nlast":  "last",
		"nginx: [emerg] a\nend": "[emerg] a",
		"2026/01/01 00:00:00 [emerg] 1#1: unknown directive\nend": "[emerg] unknown directive",
		"2026/01/01 00:00:00 [warn] 1#1: a":                       "[warn] a",
		" x [emerg] y\nend":                                       "x [emerg] y",
		strings.Repeat("x", 600):                                  strings.Repeat("x", 512) + "…",
		strings.Repeat("x", 511) + "é":                            strings.Repeat("x", 511) + "…",
	} {
		got := TellingLine(log)
		if got != want || TellingLine(got) != got {
			t.Errorf("%q: got %q and then %q, want %q", log, got, TellingLine(got), want)
		}
	}
}
