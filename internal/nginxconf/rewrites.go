package nginxconf

import (
	"fmt"
	"math/bits"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
)

// vulnerability is a heap overflow of nginx's rewrite module that a request can cause if the
// configuration has a pattern.
type vulnerability struct {
	id string
	// stable and mainline are the first patch levels of 1.30 and 1.31 with the fix. Older versions
	// have no fix.
	stable, mainline int
	pattern          string
}

// fixedStable and fixedMainline are the branches of nginx with the fixes: the second numbers of
// their versions.
const fixedStable, fixedMainline = 30, 31

// The patterns are from nginx's list of security advisories.
var (
	questionMark = vulnerability{
		id: "CVE-2026-42945", stable: 1, mainline: 0,
		pattern: "the replacement has a question mark, an unnamed capture such as $1 is used, and rewrite, if, or set follows",
	}
	overlappingCaptures = vulnerability{
		id: "CVE-2026-9256", stable: 2, mainline: 1,
		pattern: "the replacement has two captures, one within the other, in a redirect or after a question mark",
	}
)

// warning returns the warning for images that lack the fix, or can lack it, or "" for others.
func (v vulnerability) warning(r release) string {
	fixed := unknownPatch // older branches have no fix
	switch {
	case r.minor > fixedMainline:
		return ""
	case r.minor == fixedMainline:
		fixed = v.mainline
	case r.minor == fixedStable:
		fixed = v.stable
	}

	if fixed != unknownPatch && max(r.patch, 0) >= fixed {
		return ""
	}

	unless := " (not needed if your distribution has the fix)"
	if r.minor > 0 && !r.guessed && (fixed == unknownPatch || r.patch != unknownPatch) {
		unless = ""
	}
	return fmt.Sprintf("%s (fixed in nginx 1.30.%d and 1.31.%d): a request can overflow the heap, because %s. "+
		"Set spec.image to an nginx with the fix, or use named captures%s", v.id, v.stable, v.mainline, v.pattern, unless)
}

// checkRewrites warns of configurations that expose vulnerabilities of the image's nginx.
func (c *checker) checkRewrites() {
	if message := questionMark.warning(c.release); message != "" {
		c.checkQuestionMarks(message)
	}
	if message := overlappingCaptures.warning(c.release); message != "" {
		c.checkOverlaps(message)
	}
}

// openRewrite is a rewrite whose replacement has arguments and which does not end the processing.
// captures reports whether it uses an unnamed capture itself.
type openRewrite struct {
	*directive
	captures bool
}

// checkQuestionMarks warns of each rewrite whose replacement has arguments, if a rewrite, if, or
// set follows in the same server or location and one of the two uses an unnamed capture.
func (c *checker) checkQuestionMarks(message string) {
	open := map[*directive][]openRewrite{}
	for _, d := range c.all {
		if d.name != "rewrite" && d.name != "if" && d.name != "set" {
			continue
		}

		scope, used := rewriteScope(d), slices.ContainsFunc(d.args, hasCapture)
		open[scope] = slices.DeleteFunc(open[scope], func(earlier openRewrite) bool {
			exposed := used || earlier.captures
			if exposed {
				c.warn(earlier.directive, message)
			}
			return exposed
		})

		// More findings than are shown are not needed. A flag or a redirect ends the processing.
		if d.name == "rewrite" && len(d.args) == 2 && !isRedirect(d) && hasArguments(d) && len(open[scope]) < shown {
			open[scope] = append(open[scope], openRewrite{d, used})
		}
	}
}

// rewriteScope returns the server or location whose rewrite directives nginx runs in order,
// including the directives in its if blocks.
func rewriteScope(d *directive) *directive {
	scope := d.parent
	for scope != nil && scope.name == "if" {
		scope = scope.parent
	}
	return scope
}

// hasArguments reports whether a replacement has arguments. A question mark at its end adds none.
func hasArguments(d *directive) bool {
	return strings.Contains(strings.TrimSuffix(d.args[1], "?"), "?")
}

func isRedirect(d *directive) bool {
	isStart := func(start string) bool { return strings.HasPrefix(d.args[1], start) }
	return slices.Contains(d.args[2:], "redirect") || slices.Contains(d.args[2:], "permanent") ||
		slices.ContainsFunc([]string{"http://", "https://", "$scheme"}, isStart)
}

// capturesIn returns the unnamed captures $1 to $9 of a word as bits, and whether the word has
// other variables.
func capturesIn(word string) (used uint, others bool) {
	_, variables, _ := strings.Cut(word, "$")
	for name := range strings.SplitSeq(variables, "$") {
		switch {
		case name == "":
		case name[0] >= '1' && name[0] <= '9':
			used |= 1 << (name[0] - '0')
		default:
			others = true
		}
	}
	return used, others
}

func hasCapture(word string) bool {
	used, _ := capturesIn(word)
	return used != 0
}

// parseBudget limits the regular expressions that are parsed, in bytes. parseCost is the work for an
// expression itself.
const parseBudget, parseCost = 64 << 10, 16

// checkOverlaps warns of each rewrite whose replacement has two overlapping captures, in a redirect
// or behind a question mark. With a variable in the replacement, nginx computes the length in
// another way, which has no defect.
func (c *checker) checkOverlaps(message string) {
	budget := parseBudget
	for _, d := range c.named["rewrite"] {
		used, others := capturesIn(d.args[1])
		if bits.OnesCount(used) < 2 || others || !isRedirect(d) && !hasArguments(d) {
			continue
		}
		if budget -= len(d.args[0]) + parseCost; budget < 0 {
			return
		}
		if hasOverlap(d.args[0], used) {
			c.warn(d, message)
		}
	}
}

// Go's parser does not know lookarounds, which match the same text as other groups.
var (
	lookaround        = regexp.MustCompile(`\(\?<?[=!]`)
	groupInLookaround = regexp.MustCompile(`\(\?<?[=!][^()]*\(`)
)

// hasOverlap reports whether two used captures of a regular expression overlap. A group in a
// lookaround, and an expression that only nginx can parse, count as an overlap.
func hasOverlap(pattern string, used uint) bool {
	expression, err := syntax.Parse(lookaround.ReplaceAllString(pattern, "(?:"), syntax.Perl)
	return err != nil || groupInLookaround.MatchString(pattern) || hasNested(expression, used, false)
}

// hasNested reports whether a regular expression has a used capture in another one. inCapture
// reports whether the expression itself is in a used capture.
func hasNested(expression *syntax.Regexp, used uint, inCapture bool) bool {
	if expression.Op == syntax.OpCapture && used>>expression.Cap&1 != 0 {
		if inCapture {
			return true
		}
		inCapture = true
	}
	return slices.ContainsFunc(expression.Sub, func(sub *syntax.Regexp) bool { return hasNested(sub, used, inCapture) })
}
