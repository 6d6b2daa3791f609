package nginxconf

import (
	"fmt"
	"slices"

	crossplane "github.com/nginxinc/nginx-go-crossplane"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
)

// MaxBytes is how large the files may be together: what fits into a ConfigMap, with room for its metadata.
const MaxBytes = 1<<20 - 16<<10

// Check returns what is wrong with the user's configuration of a spec, nothing where nginx would take it.
func Check(spec *v1alpha2.NginxOperatorSpec, servers string) []Problem {
	return inspect(spec, servers).problems
}

// Warnings returns what works in the user's configuration and is deprecated or surely not meant, and what nobody can
// know before nginx starts.
func Warnings(spec *v1alpha2.NginxOperatorSpec, servers string) []Problem {
	return inspect(spec, servers).warnings
}

// checker looks at one configuration.
type checker struct {
	spec               *v1alpha2.NginxOperatorSpec
	release            release
	problems, warnings []Problem

	// all are the directives that are known and in their place, in the order of the text; named are the same by name,
	// and inBlock by the block around them and the name.
	all     []*directive
	named   map[string][]*directive
	inBlock map[blockAndName][]*directive
	// unseen tells that a file is included that exists only in the image, so that what is missing may be there.
	unseen bool
}

type blockAndName struct {
	block *directive
	name  string
}

// rules are what is looked at once the text is known to be well-formed. Each is about one thing.
var rules = []func(*checker){
	(*checker).checkValues,
	(*checker).checkRepetitions,
	(*checker).checkExpressions,
	(*checker).checkParameters,
	(*checker).checkBuffers,
	(*checker).checkFiles,
	(*checker).checkIncludes,
	(*checker).checkLocations,
	(*checker).checkUpstreams,
	(*checker).checkZones,
	(*checker).checkLogFormats,
	(*checker).checkVariables,
	(*checker).checkListens,
	(*checker).checkPorts,
	(*checker).checkCertificates,
	(*checker).checkHosts,
}

func inspect(spec *v1alpha2.NginxOperatorSpec, servers string) *checker {
	c := &checker{
		spec: spec, release: releaseOf(spec.Image),
		named: map[string][]*directive{}, inBlock: map[blockAndName][]*directive{},
	}
	if servers == "" {
		return c
	}
	files, err := Render(spec, servers, false)
	if err != nil {
		c.problems = append(c.problems, Problem{Message: err.Error()})
		return c
	}
	if size := len(files[MainFile]) + len(files[ServersFile]); size > MaxBytes {
		c.problems = append(c.problems, Problem{Message: fmt.Sprintf(
			"the configuration has %d bytes, and a ConfigMap takes %d: split it into several NginxOperators, or put long lists into an image of your own", size, MaxBytes)})
		return c
	}
	tree, problem := parse(servers, c.release)
	if problem != nil {
		c.problems = append(c.problems, *problem)
		return c
	}
	c.collect(tree, nil, contextHTTP)
	for _, rule := range rules {
		rule(c)
	}
	c.problems, c.warnings = firstOf(c.problems), firstOf(c.warnings)
	return c
}

// shown is how many problems are told at once; the rest of a long list has the same cause most often.
const shown = 20

// firstOf returns the first problems in the order of the text.
func firstOf(problems []Problem) []Problem {
	slices.SortStableFunc(problems, func(a, b Problem) int { return a.Line - b.Line })
	if rest := len(problems) - shown; rest > 0 {
		problems = append(problems[:shown:shown], Problem{Message: fmt.Sprintf("and %d more", rest)})
	}
	return problems
}

func (c *checker) refuse(d *directive, format string, args ...any) {
	c.problems = append(c.problems, Problem{Line: d.Line, Directive: d.Directive.Directive, Message: fmt.Sprintf(format, args...)})
}

func (c *checker) warn(d *directive, format string, args ...any) {
	c.warnings = append(c.warnings, Problem{Line: d.Line, Directive: d.Directive.Directive, Message: fmt.Sprintf(format, args...)})
}

// refuseIfKnown refuses where the operator knows what is in the image, and warns where it cannot know.
func (c *checker) refuseIfKnown(d *directive, format string, args ...any) {
	if c.release.certain {
		c.refuse(d, format, args...)
		return
	}
	c.warn(d, format, args...)
}

// directive is a directive of the user's text with the block around it.
type directive struct {
	*crossplane.Directive
	// parent is nil at the top, which is the http context.
	parent  *directive
	context uint
}

// arg returns an argument, "" where there are fewer.
func (d *directive) arg(i int) string {
	if i < len(d.Args) {
		return d.Args[i]
	}
	return ""
}

// children returns the directives of a name in the block of d; nil is the top.
func (c *checker) children(d *directive, name string) []*directive {
	return c.inBlock[blockAndName{d, name}]
}

// collect walks through a block and keeps what is known and in its place.
func (c *checker) collect(block crossplane.Directives, parent *directive, context uint) {
	for _, raw := range block {
		d := &directive{Directive: raw, parent: parent, context: context}
		if !c.checkPlace(d) {
			// Whoever writes the block around it means what is in it.
			if raw.Directive == "http" {
				c.collect(raw.Block, parent, contextHTTP)
			}
			continue
		}
		c.all = append(c.all, d)
		c.named[raw.Directive] = append(c.named[raw.Directive], d)
		at := blockAndName{parent, raw.Directive}
		c.inBlock[at] = append(c.inBlock[at], d)
		if inner := innerContext(d); inner != 0 {
			c.collect(raw.Block, d, inner)
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
