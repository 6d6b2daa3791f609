package nginxconf

import (
	"path"
	"slices"

	"github.com/example/nginx-operator/internal/defaults"
)

// reading is the size of a configuration with its included files, as far as they are read.
type reading struct{ bytes, directives, words int }

// eachIncluded reads the files of spec.files that an include matches. It calls unknown for a file
// whose text is unknown or is beyond the bounds of a configuration, and visit for each other file.
func (c *checker) eachIncluded(include *directive, unknown func(), visit func(file string, tree []*directive)) {
	if !c.inFiles(include.args[0]) {
		return
	}
	for _, name := range c.filesOf(include.args[0]) {
		file := path.Join(FilesDirectory, name)
		if slices.Contains(c.including, file) {
			c.refuse(include, "include %s: the file includes itself. Remove this line", file)
			continue
		}

		tree, complete := c.readFile(name, file)
		if !complete {
			unknown()
			continue
		}

		c.including = append(c.including, file)
		visit(file, tree)
		c.including = c.including[:len(c.including)-1]
	}
}

// setUnseen records that the content of an included file is unknown. The entries of a block such as
// map, which have no context, are not directives.
func (c *checker) setUnseen(include *directive) {
	c.unseen = true
	if include.context != 0 {
		c.unseenIn[include.parent] = true
	}
}

// readFile returns the directives of a file of spec.files, or none if it has a syntax error.
// complete is false if the text is unknown, or is beyond the bounds of a configuration.
func (c *checker) readFile(name, file string) (tree []*directive, complete bool) {
	text, known := c.texts[name]
	if c.read.bytes += len(text); !known || c.read.bytes > MaxBytes {
		return nil, false
	}

	r := &reader{text: text, line: 1, reading: c.read}
	tree, problem := r.parse()
	c.read = r.reading

	switch {
	case r.tooMany() != nil:
		return nil, false
	case problem != nil:
		problem.File = file
		c.problems.add(*problem)
		return nil, true
	}

	return tree, true
}

// ownDefaults are the directives that the operator adds to the http context unless the user's text
// sets them there. nginx rejects duplicates.
var ownDefaults = []string{
	"default_type", "sendfile", "server_tokens", "client_body_temp_path", "proxy_temp_path", "fastcgi_temp_path", "uwsgi_temp_path",
	"scgi_temp_path",
}

// checkIncludedDefaults finds directives that the operator sets as well: in included files, or at all.
func (c *checker) checkIncludedDefaults() {
	for _, name := range ownDefaults {
		for _, d := range c.children(nil, name) {
			if d.file != "" {
				c.refuse(d, `"%s" directive is duplicate: the operator already sets this. Move it from the included file to spec.config`,
					d.name)
			}
		}
	}

	if defaults.Nginx(c.spec).Resolver != nil {
		for _, d := range c.children(nil, "resolver") {
			c.refuse(d, `"resolver" directive is duplicate: spec.nginx.resolver already sets it. Remove one of the two`)
		}
	}
}
