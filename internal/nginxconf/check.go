package nginxconf

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
)

// MaxBytes is how large the files may be together: what fits into a ConfigMap, with room for its metadata.
const MaxBytes = 1<<20 - 16<<10

// slots bound how many configurations are looked at at the same time, and with that what they take of the memory.
var slots = make(chan struct{}, 2)

// Check returns what is wrong with the user's configuration of a spec: what does not parse, what no version of nginx
// knows, and what does not fit the operator. All else is for nginx to find.
func Check(spec *v1alpha2.NginxOperatorSpec, servers string) []Problem {
	return CheckIncluding(spec, servers, nil)
}

// CheckIncluding does so where the texts of files of spec.files are known, by their paths: what the configuration includes of them is
// looked at in the place of the include.
func CheckIncluding(spec *v1alpha2.NginxOperatorSpec, servers string, texts map[string]string) []Problem {
	problems, _ := inspect(spec, servers, texts, nil)
	return problems
}

// Warnings returns what works in the user's configuration and is deprecated or surely not meant, and what nobody can
// know before nginx starts. names are the DNS names of certificates, as far as they are known, by their Secrets.
func Warnings(spec *v1alpha2.NginxOperatorSpec, servers string, names map[string][]string) []Problem {
	_, warnings := inspect(spec, servers, nil, names)
	return warnings
}

// checker looks at one configuration.
type checker struct {
	spec               *v1alpha2.NginxOperatorSpec
	release            release
	problems, warnings findings

	// all are the directives that are known and in their place, in the order of the text; named are the same by name,
	// and inBlock by the block around them and the name.
	all     []*directive
	named   map[string][]*directive
	inBlock map[blockAndName][]*directive
	// unseen tells that a file is included that exists only in the image, so that what is missing may be there.
	unseen bool
	// texts are those of files of spec.files that are known, by their paths. including are those that are being read, and read is
	// what was read so far.
	texts     map[string]string
	including []string
	read      reading
	// names are those of certificates that are known, by their Secrets.
	names map[string][]string
	// masks counts the masks of includes that were compared with the paths of spec.files.
	masks int
	// proposed counts the names for which a near one was looked for.
	proposed int
}

type blockAndName struct {
	block *directive
	name  string
}

// rules are what is looked at once the text is known to be well-formed. Each is about one thing.
var rules = []func(*checker){
	(*checker).checkFiles,
	(*checker).checkIncludes,
	(*checker).checkDeclaredFiles,
	(*checker).checkIncludedDefaults,
	(*checker).checkListens,
	(*checker).checkPorts,
	(*checker).checkCertificates,
	(*checker).checkServerNames,
	(*checker).checkHosts,
}

// inspect never panics: a mistake here must not be more than one object's problem.
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
		spec: spec, release: releaseOf(spec.Image), texts: texts, names: names, read: reading{len(servers), r.directives, r.words},
		named: map[string][]*directive{}, inBlock: map[blockAndName][]*directive{},
	}
	c.collect(tree, nil, contextHTTP)
	for _, rule := range rules {
		rule(c)
	}
	return c.problems.first(), c.warnings.first()
}

func tooLarge(size int) Problem {
	return Problem{Message: fmt.Sprintf("the configuration has %d bytes, and a ConfigMap takes %d: %s", size, MaxBytes, wayOut)}
}

// What is told of one configuration at most; the rest of a long list has the same cause most often.
const (
	// shown is how many problems are told at once, and shownBytes how long they are together.
	shown      = 20
	shownBytes = 8<<10 - 64
	// quotedBytes is how much is quoted of a word of the user's.
	quotedBytes = 100
	// keptFindings bounds what is kept until it is known what comes first in the text.
	keptFindings = 1000
)

// findings are problems and how many there are, also of those that are not kept.
type findings struct {
	kept  []Problem
	count int
}

func (f *findings) add(problem Problem) {
	if f.count++; len(f.kept) < keptFindings {
		f.kept = append(f.kept, problem)
	}
}

// tell adds a problem of a directive. What of the user's text is in it is cut.
func (f *findings) tell(d *directive, format string, args []any) {
	if len(f.kept) >= keptFindings {
		f.count++
		return
	}
	for i, arg := range args {
		if word, ok := arg.(string); ok {
			args[i] = quoted(word)
		}
	}
	f.add(Problem{File: fileOf(d), Line: d.line, Directive: quoted(d.name), Message: fmt.Sprintf(format, args...)})
}

// first returns the first problems in the order of the text.
func (f *findings) first() []Problem {
	slices.SortStableFunc(f.kept, func(a, b Problem) int { return cmp.Or(strings.Compare(a.File, b.File), a.Line-b.Line) })
	f.tellOnce()
	var out []Problem
	for size := 0; len(out) < min(len(f.kept), shown); {
		next := f.kept[len(out)]
		if size += len(next.String()); size > shownBytes {
			break
		}
		out = append(out, next)
	}
	if rest := f.count - len(out); rest > 0 {
		out = append(out, Problem{Message: fmt.Sprintf("and %d more", rest)})
	}
	return out
}

// quoted returns the begin of a long word of the user's, so that nobody's text fills a status.
func quoted(word string) string {
	if len(word) <= quotedBytes {
		return strings.ToValidUTF8(word, "\uFFFD")
	}
	end := quotedBytes
	for end > 0 && !utf8.RuneStart(word[end]) {
		end--
	}
	return strings.ToValidUTF8(word[:end], "\uFFFD") + "…"
}

func (c *checker) refuse(d *directive, format string, args ...any) { c.problems.tell(d, format, args) }

func (c *checker) warn(d *directive, format string, args ...any) { c.warnings.tell(d, format, args) }

// refuseIfKnown refuses where the operator knows what is in the image, and warns where it cannot know.
func (c *checker) refuseIfKnown(d *directive, format string, args ...any) {
	if c.release.certain {
		c.refuse(d, format, args...)
		return
	}
	c.warn(d, format, args...)
}

// children returns the directives of a name in the block of d; nil is the top.
func (c *checker) children(d *directive, name string) []*directive {
	return c.inBlock[blockAndName{d, name}]
}

// collect walks through a block and keeps what is known and in its place.
func (c *checker) collect(block []*directive, parent *directive, context uint) {
	for _, d := range block {
		d.parent, d.context = parent, context
		if len(c.including) > 0 {
			d.file = c.including[len(c.including)-1]
		}
		if !c.checkPlace(d) {
			// Whoever writes the block around it means what is in it.
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

// tlsNames returns the Secrets that the spec mounts.
func (c *checker) tlsNames() []string {
	var names []string
	for _, tls := range defaults.TLS(c.spec) {
		names = append(names, tls.SecretName)
	}
	return names
}
