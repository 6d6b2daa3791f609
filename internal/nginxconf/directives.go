package nginxconf

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// The bits in which the parser tells where a directive may stand and what follows its name. It has the table and does
// not export the names of the bits; a test holds them against its own verdicts.
const (
	argumentsBlock  = 0x00000100
	argumentsFlag   = 0x00000400
	argumentsAny    = 0x00000800
	argumentsOneUp  = 0x00001000
	argumentsTwoUp  = 0x00002000
	argumentsCounts = 0x0000007f

	contextHTTP     = 0x002000000
	contextServer   = 0x004000000
	contextLocation = 0x008000000
	contextUpstream = 0x010000000
	contextServerIf = 0x020000000
	contextIf       = 0x040000000
	contextLimit    = 0x080000000
	contextAll      = contextHTTP | contextServer | contextLocation | contextUpstream | contextServerIf | contextIf | contextLimit
)

// contextNames are how users call the contexts.
var contextNames = []struct {
	context uint
	name    string
}{
	{contextHTTP, "outside of all blocks"},
	{contextServer, "in a server block"},
	{contextLocation, "in a location block"},
	{contextUpstream, "in an upstream block"},
	{contextServerIf, "in an if of a server"},
	{contextIf, "in an if of a location"},
	{contextLimit, "in a limit_except block"},
}

// owned are the directives that stand outside of the http context, or around it, with what to do instead.
var owned = map[string]string{
	"daemon":                  "nginx runs in the foreground, or its container would end; remove it",
	"master_process":          "the operator needs the master process to drain connections; remove it",
	"pid":                     "the operator sets it to a file in /tmp; remove it",
	"user":                    "nginx runs without privileges and cannot change its user; remove it",
	"worker_processes":        "the operator sets it; remove it and set spec.nginx.workerProcesses",
	"worker_shutdown_timeout": "the operator sets it; remove it and set spec.drainSeconds",
	"load_module":             "the operator loads no modules; remove it, and set spec.image to an image that has the module compiled in",
	"events":                  "the operator owns the events context; remove the block",
	"worker_connections":      "the operator owns the events context; remove it and set spec.nginx.workerConnections",
	"http":                    "the text stands in the http context already; keep what is in the block and remove `http {` and its `}`",
	"stream":                  "the operator serves HTTP only; remove the block",
	"mail":                    "the operator serves HTTP only; remove the block",
	"env":                     "the operator sets it; remove it and declare the variable in spec.env",
	"lock_file":               "the operator owns the main context; remove it",
	"thread_pool":             "the operator owns the main context; remove it",
}

// mapBlocks are the blocks whose entries are not directives.
var mapBlocks = []string{"map", "geo", "split_clients", "types", "charset_map", "geoip2", "match", "otel_exporter"}

// innerContext returns the context of the block of a directive, 0 where it has none or its entries are not directives.
func innerContext(d *directive) uint {
	if !d.isBlock {
		return 0
	}
	switch d.name {
	case "server":
		return contextServer
	case "location":
		return contextLocation
	case "upstream":
		return contextUpstream
	case "limit_except":
		return contextLimit
	case "if":
		if d.context == contextServer || d.context == contextServerIf {
			return contextServerIf
		}
		return contextIf
	}
	return 0
}

// checkPlace reports whether a directive is known, in a context where it may stand, and has as many arguments as it takes.
func (c *checker) checkPlace(d *directive) bool {
	name := d.name
	if instead, ok := owned[name]; ok {
		c.problems.add(Problem{File: fileOf(d), Line: d.line, Directive: name, Message: "cannot be set here: " + instead})
		return false
	}
	masks := c.release.masksOf(name)
	if len(masks) == 0 {
		c.unknown(d)
		return false
	}
	var here []uint
	var elsewhere uint
	for _, mask := range masks {
		if mask&d.context != 0 {
			here = append(here, mask)
		}
		elsewhere |= mask & contextAll
	}
	switch {
	case len(here) > 0:
		return c.checkArguments(d, here)
	case elsewhere == 0:
		c.refuse(d, "cannot be set here: it stands outside of the http context, which the operator owns; remove it")
	default:
		c.problems.add(Problem{File: fileOf(d), Line: d.line, Directive: name, Message: "not allowed here; it may stand " + places(elsewhere)})
	}
	return false
}

func (c *checker) unknown(d *directive) {
	near := ""
	if c.proposed++; c.proposed <= shown {
		near = nearest(d.name)
	}
	switch module := moduleOf(d.name); {
	case near != "":
		c.refuseIfKnown(d, "nginx does not know it; did you mean %s?", near)
	case module != "":
		c.refuseIfKnown(d, "nginx does not know it without the module %s, and the operator loads no modules; "+
			"set spec.image to an image that has it compiled in", module)
	default:
		c.refuseIfKnown(d, "nginx does not know it; correct the name, or set spec.image to an image that has its module compiled in")
	}
}

// checkArguments compares the number of arguments and the block with what the directive takes here.
func (c *checker) checkArguments(d *directive, masks []uint) bool {
	isBlock := d.isBlock
	sameForm := slices.DeleteFunc(slices.Clone(masks), func(mask uint) bool { return (mask&argumentsBlock != 0) != isBlock })
	switch {
	case len(sameForm) == 0 && isBlock:
		c.refuse(d, `takes no block; end it with ";"`)
		return false
	case len(sameForm) == 0:
		c.refuse(d, `takes a block; write "{", what belongs into it, and "}"`)
		return false
	}
	for _, mask := range sameForm {
		if takes(mask, len(d.args)) {
			return true
		}
		if mask&argumentsFlag != 0 && len(d.args) == 1 {
			if value := strings.ToLower(d.args[0]); value == "on" || value == "off" {
				return true
			}
			c.refuse(d, "takes on or off, not %q", d.args[0])
			return false
		}
	}
	c.refuse(d, "takes %s, not %d; a semicolon may be missing at the end of the line before or after", counts(sameForm), len(d.args))
	return false
}

// takes reports whether a directive with these bits may have this many arguments.
func takes(mask uint, count int) bool {
	return mask&argumentsAny != 0 ||
		mask&argumentsOneUp != 0 && count >= 1 ||
		mask&argumentsTwoUp != 0 && count >= 2 ||
		count < 7 && mask&argumentsCounts>>count&1 != 0
}

// counts says how many arguments these bits stand for.
func counts(masks []uint) string {
	var all uint
	for _, mask := range masks {
		all |= mask
	}
	switch {
	case all&argumentsOneUp != 0:
		return "one or more arguments"
	case all&argumentsTwoUp != 0:
		return "two or more arguments"
	case all&argumentsFlag != 0:
		return "one argument, on or off"
	}
	var numbers []string
	for rest := all & argumentsCounts; rest != 0; rest &= rest - 1 {
		numbers = append(numbers, fmt.Sprint(bits.TrailingZeros(rest)))
	}
	if len(numbers) == 1 && numbers[0] == "1" {
		return "1 argument"
	}
	return strings.Join(numbers, " or ") + " arguments"
}

func places(contexts uint) string {
	var out []string
	for _, named := range contextNames {
		if contexts&named.context != 0 {
			out = append(out, named.name)
		}
	}
	return strings.Join(out, " or ")
}
