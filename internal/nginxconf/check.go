package nginxconf

import (
	"fmt"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
)

// Check returns the problems of a configuration: syntax errors, directives that no version of nginx
// knows, and conflicts with the operator. It leaves all other errors to nginx
// (docs/adr/0017-what-admission-refuses.md).
func Check(spec *v1alpha2.NginxOperatorSpec, servers string) []Problem {
	return CheckIncluding(spec, servers, nil)
}

// CheckIncluding is Check with the texts of files of spec.files, by path. It checks an included
// file at its include.
func CheckIncluding(spec *v1alpha2.NginxOperatorSpec, servers string, texts map[string]string) []Problem {
	problems, _ := inspect(spec, servers, texts, nil)
	return problems
}

// Warnings returns the warnings about a valid configuration: deprecated or probably unintended
// directives, and files that cannot be checked before nginx starts. names are the known DNS names
// of certificates, by Secret.
func Warnings(spec *v1alpha2.NginxOperatorSpec, servers string, names map[string][]string) []Problem {
	_, warnings := inspect(spec, servers, nil, names)
	return warnings
}

// checker checks one configuration.
type checker struct {
	spec               *v1alpha2.NginxOperatorSpec
	text               string
	release            release
	problems, warnings findings
	// mounts are the volumes in the nginx container. mountsKnown is false if the mounts of patches
	// are unknown.
	mounts      []mount
	mountsKnown bool

	// all are the valid directives in the order of the text. named has them by name, and inBlock by
	// their block and name.
	all     []*directive
	named   map[string][]*directive
	inBlock map[blockAndName][]*directive
	// unseen reports whether the content of an included file is unknown, for example because the
	// file exists only in the image. Such a file can have any directive. unseenIn are the blocks
	// that include such files. A nil block is the http context.
	unseen   bool
	unseenIn map[*directive]bool
	// unseenEntries reports whether the content of a file that is included in a block such as map
	// is unknown.
	unseenEntries bool
	// texts are the known files of spec.files, by path. including is the chain of included files,
	// and its last element is the current file. read is the size of all text so far.
	texts     map[string]string
	including []string
	read      reading
	// names are the known DNS names of certificates, by Secret.
	names map[string][]string
	// masks counts the masks of includes that were compared with the paths of spec.files.
	masks int
}

type blockAndName struct {
	block *directive
	name  string
}

// rules check a configuration without syntax errors. Each rule has one topic.
var rules = []func(*checker){
	(*checker).checkFiles,
	(*checker).checkExposed,
	(*checker).checkIncludes,
	(*checker).checkMaps,
	(*checker).checkDeclaredFiles,
	(*checker).checkIncludedDefaults,
	(*checker).checkListens,
	(*checker).checkPorts,
	(*checker).checkCertificates,
	(*checker).checkServerNames,
	(*checker).checkRewrites,
	(*checker).checkPasses,
	(*checker).checkUnused,
}

// inspect never panics: a bug in a rule affects one object only.
func inspect(
	spec *v1alpha2.NginxOperatorSpec, servers string, texts map[string]string, names map[string][]string,
) (problems, warnings []Problem) {
	if servers == "" {
		return nil, nil
	}
	if len(servers) > MaxBytes {
		return []Problem{tooLarge(len(servers))}, nil
	}

	slots <- struct{}{}
	defer func() {
		<-slots
		if failure := recover(); failure != nil {
			problems = []Problem{{Message: quoted(fmt.Sprintf("it cannot be checked, please report this: %v", failure))}}
		}
	}()

	r := &reader{text: servers, line: 1}
	tree, problem := r.parse()
	if problem != nil {
		problem.Directive = quoted(problem.Directive)
		return []Problem{*problem}, nil
	}

	files, err := render(spec, servers, tree, false)
	if err != nil {
		return []Problem{{Message: err.Error()}}, nil
	}
	if size := len(files[MainFile]) + len(servers); size > MaxBytes {
		return []Problem{tooLarge(size)}, nil
	}

	c := &checker{
		spec: spec, text: servers, release: releaseOf(spec.Image), texts: texts, names: names, read: reading{len(servers), r.directives, r.words},
		named: map[string][]*directive{}, inBlock: map[blockAndName][]*directive{}, unseenIn: map[*directive]bool{},
	}
	c.mounts, c.mountsKnown = mountsOf(spec)
	c.collect(tree, nil, contextHTTP)
	for _, rule := range rules {
		rule(c)
	}
	return c.problems.first(), c.warnings.first()
}

func (c *checker) refuse(d *directive, format string, args ...any) { c.problems.addf(d, format, args) }

func (c *checker) warn(d *directive, format string, args ...any) { c.warnings.addf(d, format, args) }

// refuseIfKnown adds a problem if the content of the image is known, or else a warning.
func (c *checker) refuseIfKnown(d *directive, format string, args ...any) {
	if c.release.certain {
		c.refuse(d, format, args...)
		return
	}
	c.warn(d, format, args...)
}

// children returns the directives with a name in the block of d. A nil d is the http context.
func (c *checker) children(d *directive, name string) []*directive {
	return c.inBlock[blockAndName{d, name}]
}

// collect adds the valid directives of a block and of its inner blocks.
func (c *checker) collect(block []*directive, parent *directive, context uint) {
	for _, d := range block {
		d.parent, d.context = parent, context
		if len(c.including) > 0 {
			d.file = c.including[len(c.including)-1]
		}
		if !c.checkPlace(d) {
			// The content of the block is meant for the http context.
			if d.name == "http" {
				c.collect(d.block, parent, contextHTTP)
			}
			continue
		}

		c.all = append(c.all, d)
		c.named[d.name] = append(c.named[d.name], d)
		at := blockAndName{parent, d.name}
		c.inBlock[at] = append(c.inBlock[at], d)

		if isInclude(d) {
			c.collectIncluded(d, parent, context)
		}
		if inner := innerContext(d); inner != 0 {
			c.collect(d.block, d, inner)
		}
	}
}

// tlsNames returns the Secrets that spec.tls mounts.
func (c *checker) tlsNames() []string {
	var names []string
	for _, tls := range defaults.TLS(c.spec) {
		names = append(names, tls.SecretName)
	}
	return names
}
