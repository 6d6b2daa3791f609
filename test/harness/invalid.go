package harness

import (
	"regexp"
	"strings"
)

var (
	typeOfValue  = regexp.MustCompile(`Invalid value: "(?:array|boolean|integer|null|number|object|string)": `)
	invalidValue = regexp.MustCompile(`Invalid value: (?:"(?:[^"\\]|\\.)*"|-?[\d.]+)(?:: |$)`)
)

// Says reports whether an error of the API server contains a text. If a rule of a
// CustomResourceDefinition fails, older API servers name the type in place of the value, or where
// newer ones have nothing. The values are not compared then.
func Says(err error, text string) bool {
	if err == nil {
		return false
	}
	const anyValue = "Invalid value: "
	got := err.Error()
	return strings.Contains(got, text) || typeOfValue.MatchString(got) &&
		strings.Contains(typeOfValue.ReplaceAllString(got, anyValue), invalidValue.ReplaceAllString(text, anyValue))
}
