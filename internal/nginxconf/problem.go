package nginxconf

import "fmt"

// Problem is a finding about the user's configuration: nginx would not start with it, or would not
// work as an operand.
type Problem struct {
	// Field is the field of the spec that the finding is about, or empty if it is about the text.
	Field string
	// Key is the key of the ConfigMap with the text, or empty if spec.config has no mask, or if the
	// finding is not about one key.
	Key string
	// File is the path of the included file of spec.files, or empty for the user's text itself.
	File string
	// Line is 0 if the problem has no single line.
	Line int
	// Message is the problem, in nginx's own words if nginx has any, and the remedy.
	Message string
}

// String returns the problem in one line, without the field and the key.
func (p Problem) String() string {
	text := p.Message
	if p.Line > 0 {
		text = fmt.Sprintf("line %d: %s", p.Line, text)
	}
	if p.File != "" {
		text = p.File + ", " + text
	}
	return text
}
