package nginxconf

import (
	"fmt"
	"math/bits"
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
		pattern: "the replacement has two captures of which one encloses the other, in a redirect or behind a question mark",
	}
)

// lacks reports whether the nginx of an image lacks the fix, or can lack it. In the second case,
// certain is false.
func (r release) lacks(v vulnerability) (lacks, certain bool) {
	fixed := 0
	switch {
	case r.minor == 0:
		return true, false
	case r.minor > fixedMainline:
		return false, true
	case r.minor == fixedMainline:
		fixed = v.mainline
	case r.minor == fixedStable:
		fixed = v.stable
	default:
		return true, !r.guessed
	}
	if r.patch == unknownPatch {
		return fixed > 0, false
	}
	return r.patch < fixed, !r.guessed
}

// warning returns the warning for images that lack the fix, or can lack it, or "" for others.
func (v vulnerability) warning(r release) string {
	lacks, certain := r.lacks(v)
	if !lacks {
		return ""
	}
	unless := ""
	if !certain {
		unless = ", unless your distribution has fixed it"
	}
	return fmt.Sprintf("%s (fixed in nginx 1.30.%d and 1.31.%d) lets a request overflow the heap here: %s; "+
		"set spec.image to an nginx with the fix, or use named captures%s", v.id, v.stable, v.mainline, v.pattern, unless)
}

// checkRewrites warns of configurations that expose vulnerabilities of the image's nginx.
func (c *checker) checkRewrites() {
	warn := func(d *directive, message string) {
		c.warnings.add(Problem{File: fileOf(d), Line: d.line, Directive: d.name, Message: message})
	}

	if message := questionMark.warning(c.release); message != "" {
		c.checkQuestionMarks(func(d *directive) { warn(d, message) })
	}
	if message := overlappingCaptures.warning(c.release); message != "" {
		for _, d := range c.named["rewrite"] {
			if hasOverlap(d) {
				warn(d, message)
			}
		}
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
func (c *checker) checkQuestionMarks(warn func(*directive)) {
	open := map[*directive][]openRewrite{}
	for _, d := range c.all {
		if d.name != "rewrite" && d.name != "if" && d.name != "set" {
			continue
		}

		scope, used := rewriteScope(d), slices.ContainsFunc(d.args, hasCapture)
		open[scope] = slices.DeleteFunc(open[scope], func(earlier openRewrite) bool {
			exposed := used || earlier.captures
			if exposed {
				warn(earlier.directive)
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
	flag := ""
	if len(d.args) > 2 {
		flag = d.args[2]
	}
	return flag == "redirect" || flag == "permanent" || strings.HasPrefix(d.args[1], "http://") || strings.HasPrefix(d.args[1], "https://") ||
		strings.HasPrefix(d.args[1], "$scheme")
}

// capturesIn returns the unnamed captures $1 to $9 of a word as bits, and whether the word has
// other variables.
func capturesIn(word string) (used uint, others bool) {
	for at := strings.IndexByte(word, '$'); at >= 0 && at+1 < len(word); {
		if digit := word[at+1]; digit >= '1' && digit <= '9' {
			used |= 1 << (digit - '0')
		} else {
			others = true
		}
		next := strings.IndexByte(word[at+1:], '$')
		if next < 0 {
			break
		}
		at += 1 + next
	}
	return used, others
}

func hasCapture(word string) bool {
	used, _ := capturesIn(word)
	return used != 0
}

// hasOverlap reports whether a rewrite has the pattern of CVE-2026-9256. With a variable in the
// replacement, nginx computes the length in another way, which has no defect.
func hasOverlap(d *directive) bool {
	used, others := capturesIn(d.args[1])
	if bits.OnesCount(used) < 2 || others || !isRedirect(d) && !hasArguments(d) {
		return false
	}
	captures := capturesOf(d.args[0])
	for one := 1; one < len(captures); one++ {
		for other := one + 1; other < len(captures); other++ {
			if used>>one&1 != 0 && used>>other&1 != 0 && captures[one].overlaps(captures[other]) {
				return true
			}
		}
	}
	return false
}

// capture is the start and the end of a group in a regular expression, or zero if there is none.
// around reports whether it is in a lookahead or lookbehind, which matches the same text as other
// groups.
type capture struct {
	start, end int
	around     bool
}

func (c capture) overlaps(other capture) bool {
	switch {
	case c.end == 0 || other.end == 0:
		return false
	case c.around || other.around:
		return true
	}
	return c.start < other.start && other.end <= c.end || other.start < c.start && c.end <= other.end
}

// capturesOf returns the captured groups of a regular expression, by number.
func capturesOf(pattern string) (captures [10]capture) {
	// open are the numbers of the open groups, or 0 for groups that capture nothing or have a
	// number above 9.
	open := make([]int, 0, 16)
	// around is the number of open groups up to the outermost lookaround, or 0 outside of
	// lookarounds.
	count, around := 0, 0
	for i := 0; i < len(pattern); i++ {
		rest := pattern[i+1:]
		switch pattern[i] {
		case '\\':
			i++
		case '[':
			i += classLength(rest)
		case '(':
			number := 0
			capturing, lookaround := groupKind(rest)
			if capturing && count < len(captures)-1 {
				count++
				number = count
				captures[number] = capture{i, len(pattern), around > 0}
			}
			if open = append(open, number); around == 0 && lookaround {
				around = len(open)
			}
		case ')':
			if len(open) == 0 {
				continue
			}
			if number := open[len(open)-1]; number > 0 {
				captures[number].end = i
			}
			if open = open[:len(open)-1]; len(open) < around {
				around = 0
			}
		}
	}
	return captures
}

// lookarounds and names are the prefixes, after the "(", of lookarounds and of named groups.
var lookarounds, names = []string{"?=", "?!", "?<=", "?<!"}, []string{"?<", "?P<", "?'"}

// groupKind reports whether a group captures, and whether it is a lookaround. rest is the text
// after its "(".
func groupKind(rest string) (capturing, lookaround bool) {
	begins := func(prefix string) bool { return strings.HasPrefix(rest, prefix) }
	switch {
	case slices.ContainsFunc(lookarounds, begins):
		return false, true
	case slices.ContainsFunc(names, begins):
		return true, false
	}
	return !begins("?") && !begins("*"), false
}

// classLength returns the length of a character class after its "[". A "]" at the start is a
// character of the class.
func classLength(rest string) int {
	at := 0
	if strings.HasPrefix(rest, "^") {
		at++
	}
	for i := at; i < len(rest); i++ {
		switch {
		case rest[i] == '\\':
			i++
		case rest[i] == ']' && i > at:
			return i + 1
		}
	}
	return len(rest)
}
