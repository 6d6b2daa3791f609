package untrusted

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
)

func TestText(t *testing.T) {
	long := strings.Repeat("x", maxText)
	for text, want := range map[string]string{
		"":                                   "",
		"system:serviceaccount:shop:web":     "system:serviceaccount:shop:web",
		"müller":                             "müller",
		"a\nINFO forged":                     `a\nINFO forged`,
		"\r\t\x00\x1b[31m":                   `\r\t\x00\x1b[31m`,
		"a\u0085b\u2028c\u2029d\u202ee":      `a\u0085b\u2028c\u2029d\u202ee`,
		`"quoted" \n`:                        `\"quoted\" \\n`,
		"\xff":                               `\xff`,
		long:                                 long,
		long + "y":                           long + "...",
		strings.Repeat("x", maxText-1) + "ü": strings.Repeat("x", maxText-1) + "...",
	} {
		if got := Text(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// recorder returns a logger and the lines that it writes.
func recorder() (logr.Logger, *[]string) {
	lines := &[]string{}
	return funcr.New(func(prefix, args string) { *lines = append(*lines, prefix+" "+args) }, funcr.Options{}), lines
}

// TestLoggerBoundsWhatAStrangerSays verifies that user names, UIDs, and the text in errors, which
// any client can choose, are bounded and escaped.
func TestLoggerBoundsWhatAStrangerSays(t *testing.T) {
	base, lines := recorder()
	logger := NewLimit().Logger(base).WithName("webhook").WithValues("user", "a\nb", "count", 3)
	forged := strings.Repeat("x\n", 1<<20)
	logger.Info("A write\n", "user", forged, "error", errors.New(forged))
	logger.Error(errors.New(forged), "Failed", "stack", Own(strings.Repeat("s", 2*maxText)), forged)
	logger.WithCallDepth(1).V(1).Info("not enabled")
	if len(*lines) != 2 {
		t.Fatalf("%d lines", len(*lines))
	}
	for _, line := range *lines {
		if len(line) > 8*maxText || strings.Contains(line, "\n") || !utf8.ValidString(line) {
			t.Errorf("%d bytes: %.3000q", len(line), line)
		}
		if !strings.HasPrefix(line, "webhook ") || !strings.Contains(line, `"count"=3`) {
			t.Error(line)
		}
	}
	if !strings.Contains((*lines)[1], strings.Repeat("s", 2*maxText)) {
		t.Error("the operator's own text is cut")
	}
	if got := NewLimit().Logger(logr.Logger{}); got.GetSink() != nil {
		t.Error("a logger without a sink got one")
	}
}

// TestLoggerIsRateLimited verifies that a client that posts continuously cannot fill the disk, and
// that the log reports the number of dropped lines.
func TestLoggerIsRateLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base, lines := recorder()
		logger := NewLimit().Logger(base)
		for range 1000 {
			logger.Info("forged")
			logger.WithName("other").Error(nil, "forged")
		}
		if len(*lines) != linesAtOnce {
			t.Errorf("%d lines at once", len(*lines))
		}
		*lines = nil
		time.Sleep(time.Second)
		logger.Info("after a second")
		logger.Info("dropped")
		want := []string{` "level"=0 "msg"="after a second" "droppedLines"=1980`}
		if diff := cmp.Diff(want, *lines); diff != "" {
			t.Error(diff)
		}
	})
}
