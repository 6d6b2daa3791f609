package nginxconf

import (
	"fmt"
	"slices"
)

// listenParameters are the parameters of listen that are also directives with on or off.
var listenParameters = []string{"http2", "ssl"}

// missingSemicolon returns the remedy for a directive whose first words, up to the end of a line,
// fit it: the end of this line has no semicolon. It returns "" for other directives.
func (d *directive) missingSemicolon(fits func(arguments int) bool) string {
	for _, start := range d.starts {
		if fits(start.word - 1) {
			return fmt.Sprintf(addSemicolon, start.after)
		}
	}
	return ""
}

const addSemicolon = `. Add ";" at the end of line %d`

// splitUnterminated reports a directive without a semicolon, whose last words are the directive of
// the next line. If nginx rejects this, it splits the directive, so that the other rules see both,
// and returns the second. Otherwise it returns nil.
func (c *checker) splitUnterminated(d *directive) *directive {
	if len(d.starts) == 0 || owned[d.name] != "" {
		return nil
	}

	masks := c.masksIn(d.name, d.context)
	for i, start := range d.starts {
		next := &directive{name: d.args[start.word-1], line: start.line, args: d.args[start.word:], context: d.context}
		for _, later := range d.starts[i+1:] {
			later.word -= start.word
			next.starts = append(next.starts, later)
		}

		if !fitsAny(masks, start.word-1, false) || !c.isNext(d, next) {
			continue
		}
		if !c.reportUnterminated(d, next, start, fitsAny(masks, len(d.args), d.isBlock)) {
			return nil
		}

		next.block, next.isBlock = d.block, d.isBlock
		d.args, d.starts, d.block, d.isBlock = d.args[:start.word-1], nil, nil, false
		return next
	}

	return nil
}

// reportUnterminated reports a directive whose words from a start on are the next directive.
// isValid reports whether nginx accepts their number. It returns false if nginx can accept all, so
// that the finding is only a warning.
func (c *checker) reportUnterminated(d, next *directive, start wordStart, isValid bool) bool {
	switch {
	case d.name == "listen":
		c.refuse(d, `invalid parameter "%s": "listen" is not terminated by ";"`+addSemicolon, next.name, start.after)
	case !isValid && d.isBlock:
		c.refuse(d, `directive "%s" is not terminated by ";"`+addSemicolon, d.name, start.after)
	case !isValid:
		c.refuse(d, badCount+`: it is not terminated by ";"`+addSemicolon, d.name, start.after)
	case next.name == "listen":
		c.refuse(d, readAsArgument+addSemicolon, d.name, next.name, start.line, start.after)
	case next.hasArgumentInLine(): // one word in a line can be a name, for example of server_name
		c.warn(d, readAsArgument+addSemicolon, d.name, next.name, start.line, start.after)
		return false
	default:
		return false
	}
	return true
}

const readAsArgument = `"%s" directive has "%s" of line %d as an argument`

// hasArgumentInLine reports whether the first argument of a directive is in the line of its name.
func (d *directive) hasArgumentInLine() bool {
	return len(d.args) > 0 && (len(d.starts) == 0 || d.starts[0].word > 1)
}

// isNext reports whether the last words of a directive look like the next directive: nginx knows it
// here, and all its words, or those up to the end of a line, fit it.
func (c *checker) isNext(d, next *directive) bool {
	isSwitch := slices.Contains([]string{"on", "off"}, next.first())
	if d.name == "listen" && slices.Contains(listenParameters, next.name) && !isSwitch {
		return false
	}

	masks := c.masksIn(next.name, d.context)
	return len(masks) > 0 && (fitsAny(masks, len(next.args), d.isBlock) ||
		slices.ContainsFunc(next.starts, func(later wordStart) bool { return fitsAny(masks, later.word-1, false) }))
}

// masksIn returns the masks of a directive in a context.
func (c *checker) masksIn(name string, context uint) []uint {
	return slices.DeleteFunc(c.release.masksOf(name), func(mask uint) bool { return mask&context == 0 })
}

// fitsAny reports whether one of the masks has a number of arguments, and a block or none.
func fitsAny(masks []uint, count int, isBlock bool) bool {
	return slices.ContainsFunc(masks, func(mask uint) bool {
		return (mask&argumentsBlock != 0) == isBlock && (takes(mask, count) || mask&argumentsFlag != 0 && count == 1)
	})
}
