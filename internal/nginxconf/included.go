package nginxconf

import (
	"path"
	"slices"
)

// reading is how much was read of a configuration and of what it includes.
type reading struct{ bytes, directives, words int }

// collectIncluded walks through the files of spec.files that an include stands for, in its place. What is not known, or more than is
// read of one configuration, is unseen.
func (c *checker) collectIncluded(d *directive, parent *directive, context uint) {
	if len(d.args) != 1 || !c.inFiles(d.args[0]) {
		return
	}
	for _, file := range c.filesOf(d.args[0]) {
		text, known := c.texts[file]
		switch {
		case !known:
			c.unseen = true
		case slices.Contains(c.including, file):
			c.refuse(d, "the file includes itself; remove it")
		default:
			c.including = append(c.including, file)
			c.collectText(file, text, parent, context)
			c.including = c.including[:len(c.including)-1]
		}
	}
}

func (c *checker) collectText(file, text string, parent *directive, context uint) {
	r := &reader{text: text, line: 1, directives: c.read.directives, words: c.read.words}
	if c.read.bytes += len(text); c.read.bytes > MaxBytes {
		c.unseen = true
		return
	}
	tree, problem := r.parse()
	c.read.directives, c.read.words = r.directives, r.words
	switch {
	case r.tooMany() != nil:
		c.unseen = true
	case problem != nil:
		problem.File, problem.Directive = path.Join(FilesDirectory, file), quoted(problem.Directive)
		c.problems.add(*problem)
	default:
		c.collect(tree, parent, context)
	}
}

// ownDefaults are the directives that the operator writes into the http context where the user's text has none of them there, and
// that nginx takes once.
var ownDefaults = []string{
	"default_type", "sendfile", "server_tokens", "client_body_temp_path", "proxy_temp_path", "fastcgi_temp_path", "uwsgi_temp_path",
	"scgi_temp_path",
}

// checkIncludedDefaults finds what would stand in the http context twice.
func (c *checker) checkIncludedDefaults() {
	for _, name := range ownDefaults {
		for _, d := range c.children(nil, name) {
			if d.file != "" {
				c.refuse(d, "outside of all blocks the operator sets it as well, unless spec.config itself does; write it there")
			}
		}
	}
}

// fileOf returns where the file of spec.files is that has a directive, "" for the user's text itself.
func fileOf(d *directive) string {
	if d.file == "" {
		return ""
	}
	return path.Join(FilesDirectory, d.file)
}

// tellOnce leaves out what is the same of a file that is included more than once.
func (f *findings) tellOnce() {
	before := len(f.kept)
	f.kept = slices.CompactFunc(f.kept, func(a, b Problem) bool { return a == b && a.File != "" })
	f.count -= before - len(f.kept)
}
