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

// ofSyslog matches the start of the two lines that nginx logs for every second request if the
// receiver of request metrics is not running. They are never the reason why nginx ended.
var ofSyslog = regexp.MustCompile(`^\S+ \S+ \[\w+\] \d+#\d+: (?:\*\d+ )?send\(\) (?:failed \([^)]*\) while logging to|to) syslog\b`)

// TellingLine returns the line of a log that explains why nginx ended: the first line with [emerg],
// or else the last line. It ignores lines about syslog. Of its own result, it returns the same.
func TellingLine(log string) string {
	lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(log), "\n"), ofSyslog.MatchString)
	if len(lines) == 0 {
		return ""
	}

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
