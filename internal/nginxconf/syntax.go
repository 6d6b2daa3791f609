package nginxconf

// Syntax returns the first syntax error of a configuration of any context, or nil. A text beyond
// the bounds of a configuration is an error, too.
func Syntax(text string) *Problem {
	if len(text) > MaxBytes {
		problem := tooLarge(len(text))
		return &problem
	}
	_, problem := parse(text)
	return problem
}
