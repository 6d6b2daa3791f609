package nginxconf

import (
	_ "embed"
	"errors"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
)

// onceTable has the directives that nginx 1.28 takes only once in a block, and those whose values it puts together
// (bitmask), each with the form of its value and, where there are only some, the values. It was made from the command tables in nginx's source.
//
//go:embed data/once.txt
var onceTable string

// entry is a line of that table.
type entry struct {
	name, form string
	values     []string
}

var once, onceByName = readOnce(onceTable)

func readOnce(table string) ([]entry, map[string]entry) {
	var list []entry
	byName := map[string]entry{}
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		e := entry{name: fields[0], form: fields[1], values: fields[2:]}
		list = append(list, e)
		byName[e.name] = e
	}
	return list, byName
}

// form is how a value looks, and how to say so.
type form struct {
	pattern *regexp.Regexp
	say     string
}

const timeUnits = `([0-9]+(ms|y|M|w|d|h|m|s)? *)+`

var forms = map[string]form{
	"size":          {regexp.MustCompile(`^[0-9]+[kKmM]?$`), "a size like 512, 8k or 10m"},
	"offset":        {regexp.MustCompile(`^[0-9]+[kKmMgG]?$`), "a size like 512, 8k, 10m or 1g"},
	"variable-size": {regexp.MustCompile(`^[0-9]+[kKmM]?$`), "a size like 512, 8k or 10m"},
	"milliseconds":  {regexp.MustCompile(`^` + timeUnits + `$`), "a time like 500ms, 30s or 5m"},
	"seconds":       {regexp.MustCompile(`^` + strings.Replace(timeUnits, "ms|", "", 1) + `$`), "a time like 30s, 5m or 1h"},
	"number":        {regexp.MustCompile(`^[0-9]+$`), "a whole number"},
}

// checkValues finds values that nginx cannot read, for example client_max_body_size 10MB.
func (c *checker) checkValues() {
	for _, d := range c.all {
		known, ok := onceByName[d.Directive.Directive]
		if !ok || len(d.Args) == 0 {
			continue
		}
		if f, ok := forms[known.form]; ok {
			if !strings.Contains(d.Args[0], "$") && !f.pattern.MatchString(d.Args[0]) {
				c.refuse(d, "%q is not %s", d.Args[0], f.say)
			}
			continue
		}
		switch known.form {
		case "buffers":
			if !forms["number"].pattern.MatchString(d.arg(0)) || !forms["size"].pattern.MatchString(d.arg(1)) {
				c.refuse(d, "takes a number and a size, for example 8 16k")
			}
		case "enum", "bitmask":
			for _, value := range d.Args {
				oneOf := func(allowed string) bool { return strings.EqualFold(allowed, value) }
				if !slices.ContainsFunc(known.values, oneOf) {
					c.refuseIfKnown(d, "%q is none of its values; it takes %s", value, strings.Join(known.values, ", "))
				}
			}
		}
	}
}

// checkRepetitions finds directives that stand twice in a block and may not.
func (c *checker) checkRepetitions() {
	type key struct {
		block *directive
		name  string
	}
	first := map[key]*directive{}
	for _, d := range c.all {
		name := d.Directive.Directive
		// nginx puts the values of a bitmask together.
		if known, ok := onceByName[name]; !ok || known.form == "bitmask" {
			continue
		}
		// nginx keeps both in the same place.
		if name == "alias" {
			name = "root"
		}
		earlier, found := first[key{d.parent, name}]
		if !found {
			first[key{d.parent, name}] = d
			continue
		}
		c.refuse(d, "the block has %s in line %d already, and it may stand there only once; remove one of them", earlier.Directive.Directive, earlier.Line)
	}
}

// checkExpressions finds regular expressions with an open bracket. Go reads another dialect than nginx, so nothing else
// that it finds is held against them.
func (c *checker) checkExpressions() {
	for _, d := range c.all {
		for _, expression := range expressions(d) {
			_, err := syntax.Parse(expression, syntax.Perl)
			var failure *syntax.Error
			if !errors.As(err, &failure) {
				continue
			}
			switch failure.Code {
			case syntax.ErrMissingBracket, syntax.ErrMissingParen, syntax.ErrUnexpectedParen, syntax.ErrTrailingBackslash:
				c.refuse(d, "the regular expression %s: %s; correct it", expression, failure.Code)
			}
		}
	}
}

// expressions returns the regular expressions among the arguments of a directive.
func expressions(d *directive) []string {
	switch d.Directive.Directive {
	case "location":
		modifier, pattern := locationOf(d)
		if modifier == "~" || modifier == "~*" {
			return []string{pattern}
		}
	case "rewrite":
		return d.Args[:1]
	case "server_name":
		var out []string
		for _, name := range d.Args {
			if pattern, ok := strings.CutPrefix(name, "~"); ok {
				out = append(out, pattern)
			}
		}
		return out
	case "if":
		if len(d.Args) == 3 && slices.Contains([]string{"~", "~*", "!~", "!~*"}, d.Args[1]) {
			return d.Args[2:]
		}
	case "map":
		var out []string
		for _, line := range d.Block {
			if pattern, ok := strings.CutPrefix(line.Directive, "~"); ok {
				out = append(out, strings.TrimPrefix(pattern, "*"))
			}
		}
		return out
	}
	return nil
}
