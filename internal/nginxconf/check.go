package nginxconf

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// checker checks one configuration.
type checker struct {
	spec               *v1alpha2.NginxOperatorSpec
	servers            Servers
	release            release
	problems, warnings findings
	// mountsKnown is false if the mounts of patches are unknown.
	mounts      []mount
	mountsKnown bool

	// all are the valid directives in the order of the text, also by name, and by block and name.
	all     []*directive
	named   map[string][]*directive
	inBlock map[blockAndName][]*directive
	// unseen reports whether the content of an included file is unknown, for example because only
	// the image has the file. unseenIn are the blocks that include such files, with nil for the http
	// context, and unseenEntries reports whether a block such as map includes one.
	unseen, unseenEntries bool
	unseenIn              map[*directive]bool
	// key is the key of the current file of the user's text, or "".
	key string
	// including is the chain of included files, and its last element is the current file. read is
	// the size of all text so far.
	including []string
	read      reading
	// texts and names are the parameters of Check.
	texts map[string]string
	names map[string][]string
	// modules are the known modules that the spec loads, and loadsUnlisted reports whether it also
	// loads modules whose directives are unknown.
	modules       []*module
	loadsUnlisted bool
	values        Values
	// directories are the files of the spec with a mask, and files has the paths of all others.
	directories []v1alpha2.File
	files       sets.Set[string]
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
	(*checker).checkResolvers,
	(*checker).checkRequestLog,
	(*checker).checkUnused,
}

// Check returns the problems of a configuration: syntax errors, directives that no version of nginx
// knows, and conflicts with the operator. It leaves all other errors to nginx
// (docs/adr/0017-what-admission-refuses.md). The warnings are about deprecated or probably
// unintended directives, and about files that cannot be checked before nginx starts.
//
// texts are the known files of spec.files, by path, which are checked at their include. They are nil
// before the ConfigMaps are read. Otherwise, spec.Files also has the keys that masks match. names
// are the known DNS names of certificates, by Secret. Check never panics: a bug in a rule affects one
// object only.
func Check(
	spec *v1alpha2.NginxOperatorSpec, servers Servers, texts map[string]string, names map[string][]string,
) (problems, warnings []Problem) {
	if size := servers.Size(); size > MaxBytes {
		return []Problem{tooLarge(size)}, nil
	}

	slots <- struct{}{}
	defer func() {
		<-slots
		if failure := recover(); failure != nil {
			problems = []Problem{{Message: fmt.Sprintf("the operator failed to check this configuration (a defect). Please report it: %s",
				quoted(fmt.Sprint(failure)))}}
		}
	}()

	trees, read, syntax := servers.parseAll(nil)
	if syntax.count > 0 {
		return syntax.first(), nil
	}

	for i, part := range servers {
		if problem := wholeConfiguration(trees[i]); problem != nil {
			problem.Key = part.Key
			return []Problem{*problem}, nil
		}
	}

	files := render(spec, servers, trees, false, nil)
	if size := len(files[MainFile]) + servers.Size(); size > MaxBytes {
		return []Problem{tooLarge(size)}, nil
	}

	c := newChecker(spec)
	c.servers, c.texts, c.names, c.read = servers, texts, names, read
	c.release = releaseOf(spec.Image)
	c.mounts, c.mountsKnown = mountsOf(spec)
	for i, part := range servers {
		c.key = part.Key
		c.collect(trees[i], nil, contextHTTP)
	}

	for _, rule := range rules {
		rule(c)
	}

	return c.problems.first(), c.warnings.first()
}

func newChecker(spec *v1alpha2.NginxOperatorSpec) *checker {
	c := &checker{
		spec: spec, unseenIn: map[*directive]bool{}, files: sets.New[string](), values: Literals(spec),
		named: map[string][]*directive{}, inBlock: map[blockAndName][]*directive{},
	}
	for _, file := range spec.Files {
		if HasMask(file) {
			c.directories = append(c.directories, file)
		} else {
			c.files.Insert(file.Path)
		}
	}
	if spec.Nginx != nil {
		c.load(spec.Nginx.Modules)
	}
	return c
}

func (c *checker) refuse(d *directive, format string, args ...any) { c.problems.addf(d, format, args) }

func (c *checker) warn(d *directive, format string, args ...any) { c.warnings.addf(d, format, args) }

// refuseIfKnown adds a problem if the directives of the image and of its loaded modules are known, or
// else a warning.
func (c *checker) refuseIfKnown(d *directive, format string, args ...any) {
	if c.release.certain && !c.loadsUnlisted {
		c.refuse(d, format, args...)
	} else {
		c.warn(d, format, args...)
	}
}

// withNames returns the directives with one of the names.
func (c *checker) withNames(names ...string) []*directive {
	var all []*directive
	for _, name := range names {
		all = append(all, c.named[name]...)
	}
	return all
}

// children returns the directives with a name in the block of d. A nil d is the http context.
func (c *checker) children(d *directive, name string) []*directive {
	return c.inBlock[blockAndName{d, name}]
}

// collect adds the valid directives of a block and of its inner blocks.
func (c *checker) collect(block []*directive, parent *directive, context uint) {
	for _, d := range block {
		for d != nil {
			d.parent, d.context = parent, context
			if d.key = c.key; len(c.including) > 0 {
				d.key, d.file = "", c.including[len(c.including)-1]
			}

			next := c.splitUnterminated(d)
			c.collectOne(d)
			d = next
		}
	}
}

// collectOne adds a directive with its block, if it is valid.
func (c *checker) collectOne(d *directive) {
	if !c.checkPlace(d) {
		return
	}

	d.unknown = c.isUnknown(d)
	c.all = append(c.all, d)
	c.named[d.name] = append(c.named[d.name], d)
	at := blockAndName{d.parent, d.name}
	c.inBlock[at] = append(c.inBlock[at], d)

	if isInclude(d) {
		c.eachIncluded(d, func() { c.setUnseen(d) }, func(_ string, tree []*directive) { c.collect(tree, d.parent, d.context) })
	}
	if inner := innerContext(d); inner != 0 {
		c.collect(d.block, d, inner)
	}
}
