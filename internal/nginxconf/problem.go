package nginxconf

import "fmt"

// Problem is a finding about the user's configuration: nginx would not start with it, or would not
// work as an operand.
type Problem struct {
	// Field is the field of the spec that the finding is about, or empty if it is about the text.
	Field string
	// File is the path of the included file of spec.files, or empty for the user's text itself.
	File string
	// Line and Directive are 0 and empty if the problem has no single line or directive.
	Line      int
	Directive string
	// Message is the problem and the remedy.
	Message string
}

// String returns the problem in one line, without the field.
func (p Problem) String() string {
	text := p.Message
	if p.Directive != "" {
		text = p.Directive + ": " + text
	}
	if p.Line > 0 {
		text = fmt.Sprintf("line %d: %s", p.Line, text)
	}
	if p.File != "" {
		text = p.File + ", " + text
	}
	return text
}
