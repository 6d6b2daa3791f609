// Package nginxlog finds the line of nginx's error log that explains why nginx ended.
package nginxlog

import (
	"regexp"
	"slices"
	"strings"
)

// maxLine is the limit in bytes for a line. The line quotes the user's configuration.
const maxLine = 512

// linePrefix has the time and the process, which differ from crash to crash.
var linePrefix = regexp.MustCompile(`^(?:nginx: |\d{4}/\d{2}/\d{2} \d{2}:\d{2}:\d{2} )(\[\w+\]) (?:\d+#\d+: )?`)

// TellingLine returns the line of a log that explains why nginx ended: the first line with [emerg],
// or else the last line. Of its own result, it returns the same.
func TellingLine(log string) string {
	lines := strings.Split(strings.TrimSpace(log), "\n")
	telling := lines[len(lines)-1]
	if i := slices.IndexFunc(lines, func(line string) bool { return strings.Contains(line, "[emerg]") }); i >= 0 {
		telling = lines[i]
	}

	telling = linePrefix.ReplaceAllString(strings.TrimSpace(telling), "$1 ")
	if len(telling) > maxLine {
		telling = strings.ToValidUTF8(telling[:maxLine], "") + "…"
	}
	return telling
}
