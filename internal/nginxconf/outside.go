package nginxconf

import (
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
)

// Limits of open files. A connection of a worker process is an open file.
const (
	// UsualOpenFiles is the usual limit of open files of a container.
	UsualOpenFiles = 1024
	// mostOpenFiles is the kernel's default for the highest limit (fs.nr_open).
	mostOpenFiles = 1 << 20
)

// outerTexts are the fields of spec.nginx with directives of contexts outside of http.
var outerTexts = []struct {
	field   string
	file    string
	context uint
	text    func(v1alpha2.Nginx) string
}{
	{"spec.nginx.main", MainContextFile, contextMain, func(tuning v1alpha2.Nginx) string { return tuning.Main }},
	{"spec.nginx.events", EventsFile, contextEvents, func(tuning v1alpha2.Nginx) string { return tuning.Events }},
}

// CheckOutside returns the problems of spec.nginx.main and spec.nginx.events, and warnings about
// directives without effect. Each has its field. Like Check, it leaves all errors to nginx that no
// operator needs to find. texts are the known files of spec.files, by path.
func CheckOutside(spec *v1alpha2.NginxOperatorSpec, texts map[string]string) (problems, warnings []Problem) {
	if len(texts) > 0 { // the texts of spec.nginx alone are small
		slots <- struct{}{}
		defer func() { <-slots }()
	}

	for _, outer := range outerTexts {
		text := outer.text(defaults.Nginx(spec))
		if text == "" {
			continue
		}

		c := newChecker(spec)
		c.texts, c.release = texts, releaseOf(spec.Image)
		if strings.Contains(text, "include") {
			c.mounts, c.mountsKnown = mountsOf(spec)
		}
		r := &reader{text: text, line: 1, reading: reading{bytes: len(text)}}
		tree, problem := r.parse()
		if problem != nil {
			c.problems.add(*problem)
		} else {
			c.read = r.reading
			c.collect(tree, nil, outer.context)
			c.checkOuter()
		}

		problems = append(problems, inField(outer.field, c.problems.first())...)
		warnings = append(warnings, inField(outer.field, c.warnings.first())...)
	}
	return problems, warnings
}

func inField(name string, found []Problem) []Problem {
	for i := range found {
		found[i].Field = name
	}
	return found
}

// checkOuter checks the valid directives of a text.
func (c *checker) checkOuter() {
	for _, d := range c.all {
		switch d.name {
		case "include":
			c.checkOuterInclude(d)
		case "worker_rlimit_nofile":
			if limit, err := strconv.ParseInt(d.first(), 10, 64); err == nil && limit > mostOpenFiles {
				c.warn(d, "worker_rlimit_nofile %s: setrlimit() fails above the hard limit, which is at most %d on most nodes. Use a smaller number",
					d.first(), mostOpenFiles)
			}
		case "worker_priority":
			if strings.HasPrefix(d.first(), "-") {
				c.warn(d, "worker_priority %s: setpriority() fails without privileges, so it has no effect. Remove it", d.first())
			}
		case "debug_connection":
			if c.release.certain {
				c.warn(d, `"debug_connection" is ignored, because the nginx of this image is built without --with-debug. Remove it`)
			}
		case "worker_rlimit_core", "working_directory":
			c.warn(d, "%s: a core file has the memory of nginx, with the private keys of spec.tls. Remove it when you have found the error",
				d.name)
		}
	}
}

// checkOuterInclude refuses an include whose text could set what the operator owns, unseen.
func (c *checker) checkOuterInclude(d *directive) {
	const remedy = "include %s: only a file of spec.files with a configMapRef can be included here. "
	file := d.first()
	found := len(c.filesOf(file)) > 0
	switch {
	case !c.inFiles(file), !c.mountsKnown, c.masks > maxMasks:
		c.refuse(d, remedy+"Put its text here", file)
		return
	case !found:
		c.refuse(d, remedy+"Add `- path: %s` there", file, below(file))
	}
	for _, declared := range c.spec.Files {
		matches, _ := path.Match(below(file), declared.Path)
		if declared.SecretRef != nil && matches {
			c.refuse(d, remedy+"%s has a secretRef", file, declared.Path)
		}
	}
}

// wholeConfiguration returns the problem of a whole nginx.conf, which has directives around an http
// block.
func wholeConfiguration(tree []*directive) *Problem {
	at := slices.IndexFunc(tree, func(d *directive) bool { return d.name == "http" && d.isBlock })
	if at < 0 {
		return nil
	}

	problem := &Problem{Line: tree[at].line, Message: fmt.Sprintf(notHere, "http") + ": "}
	if len(tree) == 1 {
		problem.Message += `the text is inside the http block already. Remove "http {" and its "}", and keep the directives between`
		return problem
	}

	var around []string
	for _, d := range tree {
		if name := quoted(d.name); !slices.Contains(around, name) && len(around) < shown {
			around = append(around, name)
		}
	}
	problem.Message += "the text is a whole nginx.conf (" + strings.Join(around, ", ") + "), and must be the inside of its http block. " +
		"Run `kubectl nginx migrate -f nginx.conf`, which writes each directive into its field"
	return problem
}

// OpenFiles returns the limit of open files of a worker process: worker_rlimit_nofile of
// spec.nginx.main, or UsualOpenFiles.
func OpenFiles(spec *v1alpha2.NginxOperatorSpec) int64 {
	text := defaults.Nginx(spec).Main
	if !strings.Contains(text, "worker_rlimit_nofile") {
		return UsualOpenFiles
	}

	tree, _ := parse(text)
	for _, d := range tree {
		if limit, err := strconv.ParseInt(d.first(), 10, 64); err == nil && d.name == "worker_rlimit_nofile" {
			return min(max(limit, 1), math.MaxInt32)
		}
	}
	return UsualOpenFiles
}

// FieldOf returns the field of the spec whose text is in a file of Directory, or "" for any other
// file.
func FieldOf(file string) string {
	name, isConfiguration := strings.CutPrefix(file, Directory+"/")
	if !isConfiguration {
		return ""
	}

	switch name {
	case ServersFile:
		return "spec.config"
	case ModulesFile:
		return "spec.nginx.modules"
	case ResolverFile:
		return "spec.nginx.resolver"
	}
	for _, outer := range outerTexts {
		if outer.file == name {
			return outer.field
		}
	}
	return ""
}
