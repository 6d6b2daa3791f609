// Package reference embeds generated pages of the documentation, for programs that quote them.
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

// Remedy returns the usual remedy for a reason of status.blockedBy, or "" if the table of reasons
// has none.
func Remedy(reason string) string {
	for _, found := range row.FindAllStringSubmatch(reasons, -1) {
		if found[1] == reason {
			return found[2]
		}
	}
	return ""
}
