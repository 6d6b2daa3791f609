package nginxconf

import (
	"slices"
	"strings"
)

// owned are directives that a user must not set: directives of the main and events contexts, and
// the blocks http, stream, and mail. Each has the reason and the remedy.
var owned = map[string]string{
	"daemon":                  "nginx must run in the foreground. Remove it",
	"master_process":          "the master process drains connections. Remove it",
	"pid":                     "the operator sets it. Remove it",
	"user":                    "nginx starts without root permissions and cannot change its user. Remove it",
	"worker_processes":        "the operator sets it. Remove it and set spec.nginx.workerProcesses",
	"worker_shutdown_timeout": "the operator sets it. Remove it and set spec.drainSeconds",
	"load_module":             "the operator loads no modules. Remove it and set spec.image to an nginx that has the module compiled in",
	"events":                  "the operator sets it. Remove the block and set spec.nginx.workerConnections",
	"worker_connections":      "the operator sets it. Remove it and set spec.nginx.workerConnections",
	"http":                    `the text is inside the http block already. Remove "http {" and its "}", and keep the directives between`,
	"stream":                  "the operator serves HTTP only. Remove the block",
	"mail":                    "the operator serves HTTP only. Remove the block",
	"env":                     "the operator sets it. Remove it and declare the variable in spec.env",
	"lock_file":               ownsMain,
	"thread_pool":             ownsMain,
}

const (
	ownsMain = "the operator owns the main context. Remove it"
	// onlyLoaded is for OpenTelemetry's module, which exists only as a dynamic one.
	onlyLoaded = "the OpenTelemetry module must be loaded, and the operator loads no modules. Remove it"

	// notHere, unknown, and badCount are nginx's own words.
	notHere  = `"%s" directive is not allowed here`
	unknown  = `unknown directive "%s"`
	badCount = `invalid number of arguments in "%s" directive`
)

// isOpenTelemetry reports whether a directive belongs to one of OpenTelemetry's modules, or loads
// one.
func isOpenTelemetry(d *directive) bool {
	if d.name == "load_module" {
		return strings.Contains(d.first(), "otel") || strings.Contains(d.first(), "opentelemetry")
	}
	return strings.HasPrefix(d.name, "otel_") || strings.HasPrefix(d.name, "opentelemetry")
}

// innerContext returns the context of the block of a directive, or 0 if it has no block, or if the
// entries of the block are not directives.
func innerContext(d *directive) uint {
	switch {
	case !d.isBlock:
		return 0
	case d.name != "if":
		return blockContexts[d.name]
	case d.context == contextServer, d.context == contextServerIf:
		return contextServerIf
	}
	return contextIf
}

var blockContexts = map[string]uint{
	"server": contextServer, "location": contextLocation, "upstream": contextUpstream, "limit_except": contextLimit,
}

// checkPlace reports whether a directive is known, allowed in its context, and has a valid number
// of arguments.
func (c *checker) checkPlace(d *directive) bool {
	if instead, ok := owned[d.name]; ok {
		if isOpenTelemetry(d) {
			instead = onlyLoaded
		}
		c.refuse(d, notHere+": "+instead, d.name)
		return false
	}

	masks := c.release.masksOf(d.name)
	switch {
	case isOpenTelemetry(d):
		c.refuseIfKnown(d, unknown+": "+onlyLoaded, d.name)
		if c.release.certain || len(masks) == 0 {
			return false
		}
	case len(masks) == 0:
		c.refuseIfKnown(d, unknown+". Correct it, or set spec.image to an nginx that has its module compiled in", d.name)
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
		c.refuse(d, notHere+": "+ownsMain, d.name)
	default:
		c.refuse(d, notHere+". Move it "+places(elsewhere), d.name)
	}

	return false
}

// checkArguments reports whether the number of arguments, and the presence of a block, match one of
// the masks.
func (c *checker) checkArguments(d *directive, masks []uint) bool {
	sameForm := slices.DeleteFunc(masks, func(mask uint) bool { return (mask&argumentsBlock != 0) != d.isBlock })

	switch {
	case len(sameForm) == 0 && d.isBlock:
		c.refuse(d, `directive "%s" is not terminated by ";". Remove its block, or put a value with braces in quotes`, d.name)
		return false
	case len(sameForm) == 0:
		c.refuse(d, `directive "%s" has no opening "{". Write its block instead of ";"`, d.name)
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
			c.refuse(d, `invalid value "%s" in "%s" directive, it must be "on" or "off"`, d.args[0], d.name)
			return false
		}
	}

	c.refuse(d, badCount+": it takes %s, and has %d"+d.missingSemicolon(func(count int) bool {
		return slices.ContainsFunc(sameForm, func(mask uint) bool { return takes(mask, count) })
	}), d.name, counts(sameForm), len(d.args))
	return false
}
