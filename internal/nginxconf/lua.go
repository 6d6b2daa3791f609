package nginxconf

import "strings"

// skipLua skips a Lua block and its closing brace. It returns false if the block has no closing
// brace. Braces in strings and comments do not count.
func (r *reader) skipLua() bool {
	for depth := 1; r.pos < len(r.text); r.pos++ {
		switch rest := r.text[r.pos:]; {
		case rest[0] == '\n':
			r.line++
		case rest[0] == '{':
			depth++
		case rest[0] == '}':
			if depth--; depth == 0 {
				r.pos++
				return true
			}
		case rest[0] == '"', rest[0] == '\'':
			r.skipLuaString()
		case strings.HasPrefix(rest, "--") && luaBracket(rest[2:]) == "":
			r.skipTo("\n", 2)
		case luaBracket(rest) != "":
			r.skipTo(luaBracket(rest), 1)
		}
	}
	return false
}

// luaBracket returns the closing bracket for the opening long bracket at the start of a text, or ""
// if there is none.
func luaBracket(text string) string {
	level := 1
	for level < len(text) && level <= maxDepth && text[level] == '=' {
		level++
	}
	if level >= len(text) || text[0] != '[' || text[level] != '[' {
		return ""
	}
	return "]" + strings.Repeat("=", level-1) + "]"
}

// skipTo skips to the last byte of the next occurrence of end, or to the last byte of the text. The
// search starts from bytes after the current position.
func (r *reader) skipTo(end string, from int) {
	size := strings.Index(r.text[r.pos+from:], end)
	if size < 0 {
		r.pos = len(r.text) - 1
		return
	}

	passed := from + size + len(end) - 1
	r.line += strings.Count(r.text[r.pos:r.pos+passed+1], "\n")
	r.pos += passed
}

// skipLuaString skips to the quote that ends a string.
func (r *reader) skipLuaString() {
	quote := r.text[r.pos]
	for r.pos++; r.pos < len(r.text) && r.text[r.pos] != quote; r.pos++ {
		if r.text[r.pos] == '\\' && r.pos+1 < len(r.text) {
			r.pos++
		}
		if r.text[r.pos] == '\n' {
			r.line++
		}
	}
}
