package nginxconf

import "fmt"

// Problem is something in the user's configuration because of which nginx would not start, or not work as an operand.
type Problem struct {
	// File is where an included file of spec.files is, empty for the user's text itself.
	File string
	// Line is the line in that text, 0 where the problem is not in one place.
	Line int
	// Directive is the name of the directive, empty where the problem is not about one.
	Directive string
	// Message says what is wrong and what to write instead.
	Message string
}

// String returns the problem in one line.
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
