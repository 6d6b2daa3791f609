// Package reference has generated pages of the documentation for programs that repeat what they say.
package reference

import (
	_ "embed" // for the table of reasons
	"regexp"
)

// reasons is the page that hack/reasons generates.
//
//go:embed reasons.md
var reasons string

var row = regexp.MustCompile("(?m)^\\| \\[`(\\w+)`\\]\\([^)]*\\) \\|[^|]*\\|[^|]*\\| (.*) \\|$")

// WayOut returns what usually helps against a reason of status.blockedBy, "" where the table of reasons names nothing.
func WayOut(reason string) string {
	for _, found := range row.FindAllStringSubmatch(reasons, -1) {
		if found[1] == reason {
			return found[2]
		}
	}
	return ""
}
