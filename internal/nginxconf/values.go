package nginxconf

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// Value is a value of spec.config.values.
type Value struct {
	// Text is "" as long as it is not known.
	Text string
	// Foreign reports whether it is from a ConfigMap, which its authors can change without the
	// permission to change the NginxOperator.
	Foreign bool
}

// Values are the values of spec.config.values, by name.
type Values map[string]Value

// Literals returns the values of a spec, of which only the literals are known.
func Literals(spec *v1alpha2.NginxOperatorSpec) Values {
	values := Values{}
	for _, declared := range ptr.Deref(spec.Config, v1alpha2.Config{}).Values {
		from := ptr.Deref(declared.ValueFrom, v1alpha2.ConfigValueSource{})
		values[declared.Name] = Value{declared.Value, from.ConfigMapKeyRef != nil}
	}
	return values
}

// MaxValue is the maximum size of a value from a ConfigMap in bytes.
const MaxValue = 1024

// CanBeForeign reports whether a value from a ConfigMap can be used: a value that starts a variable
// could disclose one.
func CanBeForeign(text string) bool {
	return text != "" && len(text) <= MaxValue && utf8.ValidString(text) &&
		!strings.ContainsFunc(text, func(r rune) bool { return r == '$' || unicode.IsControl(r) })
}

var (
	// bareName matches a name without braces.
	bareName = regexp.MustCompile(`\$([A-Z][A-Z0-9_]*)\b`)
	// namedGroup matches the start of a named group of a regular expression, which defines a variable.
	namedGroup = regexp.MustCompile(`\(\?P?[<'](\w+)[>']`)
	// definers are the directives that define a variable, in their last argument or else in their first.
	definers = map[string]bool{
		"map": true, "geo": true, "split_clients": true, "set": false, "auth_request_set": false, "js_set": false, "js_var": false,
		"perl_set": false, "set_by_lua": false, "set_by_lua_block": false, "set_by_lua_file": false,
	}
)

// isName reports whether a word can be the name of a value.
func isName(word string) bool {
	return strings.Trim(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == "" && word != "" && word[0] >= 'A' && word[0] <= 'Z'
}

// namesIn returns the names of the placeholders in a text.
func namesIn(text string) (names []string) {
	_, rest, _ := strings.Cut(text, "${")
	for part := range strings.SplitSeq(rest, "${") {
		if name, _, isClosed := strings.Cut(part, "}"); isClosed && isName(name) {
			names = append(names, name)
		}
	}
	return names
}

// replace replaces the placeholders of known values, as long as room for additional bytes is left.
// It does not look for placeholders in the values.
func (v Values) replace(text string, room *int) string {
	first, rest, hasPlaces := strings.Cut(text, "${")
	if !hasPlaces {
		return text
	}

	out := strings.Builder{}
	out.WriteString(first)
	for part := range strings.SplitSeq(rest, "${") {
		name, after, isClosed := strings.Cut(part, "}")
		value := v[name].Text
		if isClosed && value != "" {
			*room -= len(value) - len("${}") - len(name)
		}
		if !isClosed || value == "" || *room < 0 {
			value, after = "${", part
		}
		out.WriteString(value)
		out.WriteString(after)
	}

	return out.String()
}

// checkWord finds a value that changes the structure of the text: with it, the word would end
// elsewhere, or would not be one. raw is the word as it is written, and next the character after it.
func (v Values) checkWord(raw, next, directive string, line int) *Problem {
	room := MaxBytes
	word := v.replace(raw, &room)
	if word == raw || next == "" {
		return nil
	}

	r := &reader{text: word + next, line: line}
	if r.skipSpace(); r.pos == 0 && strings.IndexByte(";{}", r.text[0]) < 0 {
		if _, ok := r.word(); ok && r.pos == len(r.text)-len(next) {
			return nil
		}
	}

	names := namesIn(raw)
	slices.Sort(names)
	return syntaxError(line, `the value of %s changes the number of words in "%s". `+
		`Put the whole word in quotes, or remove spaces, quotes, semicolons, braces, and backslashes from the value`,
		strings.Join(slices.Compact(names), " or "), directive)
}

// expansion inspects a configuration with placeholders.
type expansion struct {
	checker
	used, defined sets.Set[string] // names, and the variables that the text defines in capital letters
}

// Expand replaces ${NAME} by the known values of a spec. With and without the values, the text has
// the same directives with the same number of words. The problems name the value and its place, not
// its text. The warnings are about names that are probably a mistake.
func (s Servers) Expand(spec *v1alpha2.NginxOperatorSpec, values Values) (expanded Servers, problems, warnings []Problem) {
	hasPlaces := func(part Part) bool { return len(namesIn(part.Text)) > 0 }
	if len(values) == 0 && !slices.ContainsFunc(s, hasPlaces) {
		return s, nil, nil
	}

	slots <- struct{}{}
	defer func() { <-slots }()
	room := MaxBytes - s.Size()
	for _, part := range s {
		expanded = append(expanded, Part{part.Key, values.replace(part.Text, &room)})
	}
	if room < 0 {
		return nil, []Problem{tooLarge(MaxBytes - room)}, nil
	}

	trees, _, syntax := s.parseAll(values)
	if syntax.count > 0 {
		return nil, syntax.first(), nil
	}

	e := &expansion{checker{spec: spec, values: values}, sets.New[string](), sets.New[string]()}
	for _, check := range []func(*directive){e.define, e.inspect} {
		for i, part := range s {
			eachDirective(trees[i], func(d *directive) { d.key = part.Key; check(d) })
		}
	}

	for _, name := range sets.List(sets.KeySet(values).Difference(e.used)) {
		e.warnings.add(Problem{Field: "spec.config.values", Message: fmt.Sprintf("%s is unused: the text has no ${%s}. Remove it", name, name)})
	}
	return expanded, e.problems.first(), e.warnings.first()
}

func (d *directive) words() []string { return append([]string{d.name}, d.args...) }

func eachDirective(block []*directive, visit func(*directive)) {
	for _, d := range block {
		visit(d)
		eachDirective(d.block, visit)
	}
}

// define notes the variables that a directive defines, and refuses those with the name of a value.
func (e *expansion) define(d *directive) {
	var variables []string
	for _, word := range d.words() {
		if !strings.Contains(word, "(?") {
			continue
		}
		for _, group := range namedGroup.FindAllStringSubmatch(word, -1) {
			variables = append(variables, group[1])
		}
	}
	if isLast, defines := definers[d.name]; defines && isLast && len(d.args) > 0 {
		variables = append(variables, d.args[len(d.args)-1])
	} else if defines {
		variables = append(variables, d.first())
	}

	for _, variable := range variables {
		name := strings.ToUpper(nameOf(variable))
		e.defined.Insert(name)
		if _, isDeclared := e.values[name]; isDeclared {
			e.refuse(d, `"%s" defines $%s, and nginx compares names without case. Rename it, or the value %s`, d.name, nameOf(variable), name)
		}
	}
}

// inspect checks the names in a directive.
func (e *expansion) inspect(d *directive) {
	for i, word := range d.words() {
		for _, name := range namesIn(word) {
			value, isDeclared := e.values[name]
			e.used.Insert(name)
			inEnv := ""
			if slices.ContainsFunc(e.spec.Env, func(variable v1alpha2.EnvVar) bool { return variable.Name == name }) {
				inEnv = " (nginx does not read it from spec.env)"
			}
			switch {
			case isDeclared && (strings.HasPrefix(d.name, "perl") || strings.Contains(d.name, "_by_lua")):
				e.refuse(d, `${%s} in "%s": a value cannot be a part of code. Write it to a variable with set, and read the variable`, name, d.name)
			case value.Foreign && (i == 0 || isInclude(d)):
				e.refuse(d, `${%s} in "%s": a value from a ConfigMap cannot be the first word of a directive, or a part of an include. `+
					`Write it in spec.config.values`, name, d.name)
			case !isDeclared && !e.defined.Has(name):
				e.warn(d, "${%s} is not in spec.config.values%s. nginx reads its variable $%s. Add %s there, or write ${%s}",
					name, inEnv, strings.ToLower(name), name, strings.ToLower(name))
			}
		}
		for _, found := range bareName.FindAllStringSubmatch(word, -1) {
			if _, isDeclared := e.values[found[1]]; isDeclared {
				e.warn(d, "$%s is not replaced, because it has no braces. Write ${%s}", found[1], found[1])
			}
		}
	}
}

// CheckInline returns the problems and the warnings of spec.config.inline with its literal values, as
// Check does. Other values are unknown words.
func CheckInline(spec *v1alpha2.NginxOperatorSpec, names map[string][]string) (problems, warnings []Problem) {
	servers, problems, inNames := Whole(spec.Config.Inline).Expand(spec, Literals(spec))
	if len(problems) > 0 {
		return problems, nil
	}
	problems, warnings = Check(spec, servers, nil, names)
	return problems, append(inNames, warnings...)
}

// isUnknown reports whether a valid directive has a value that admission does not know. What it does
// is unknown as well.
func (c *checker) isUnknown(d *directive) bool {
	isUnknown := func(name string) bool { value, isDeclared := c.values[name]; return isDeclared && value.Text == "" }
	return len(c.values) > 0 && slices.ContainsFunc(d.words(), func(word string) bool {
		return slices.ContainsFunc(namesIn(word), isUnknown)
	})
}
