package nginxconf

import (
	"slices"
	"strings"
)

// owned are directives that a user must not set: directives of the main and events contexts, and
// the blocks http, stream, and mail. Each has the reason and the remedy.
var owned = map[string]string{
	"daemon":                  "nginx runs in the foreground, or its container would end; remove it",
	"master_process":          "the operator needs the master process to drain connections; remove it",
	"pid":                     "the operator sets it to a file in /tmp; remove it",
	"user":                    "nginx runs without privileges and cannot change its user; remove it",
	"worker_processes":        "the operator sets it; remove it and set spec.nginx.workerProcesses",
	"worker_shutdown_timeout": "the operator sets it; remove it and set spec.drainSeconds",
	"load_module":             noModules,
	"events":                  "the operator owns the events context; remove the block",
	"worker_connections":      "the operator owns the events context; remove it and set spec.nginx.workerConnections",
	"http":                    "the text is inside the http context already; keep what is in the block and remove `http {` and its `}`",
	"stream":                  "the operator serves HTTP only; remove the block",
	"mail":                    "the operator serves HTTP only; remove the block",
	"env":                     "the operator sets it; remove it and declare the variable in spec.env",
	"lock_file":               "the operator owns the main context; remove it",
	"thread_pool":             "the operator owns the main context; remove it",
}

// Messages about modules. OpenTelemetry's module exists only as a dynamic one.
const (
	noModules  = "the operator loads no modules; remove it, and set spec.image to an image that has the module compiled in"
	onlyLoaded = "OpenTelemetry's module cannot be compiled into nginx, only loaded, and the operator loads no modules; remove it"
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
		c.refuse(d, "cannot be set here: "+instead)
		return false
	}

	masks := c.release.masksOf(d.name)
	switch {
	case isOpenTelemetry(d):
		c.refuseIfKnown(d, onlyLoaded)
		if c.release.certain || len(masks) == 0 {
			return false
		}
	case len(masks) == 0:
		c.refuseIfKnown(d, "nginx does not know it; correct the name, or set spec.image to an image that has its module compiled in")
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
		c.refuse(d, "cannot be set here: it belongs outside of the http context, which the operator owns; remove it")
	default:
		c.refuse(d, "not allowed here; it is allowed "+places(elsewhere))
	}

	return false
}

// checkArguments reports whether the number of arguments, and the presence of a block, match one of
// the masks.
func (c *checker) checkArguments(d *directive, masks []uint) bool {
	sameForm := slices.DeleteFunc(masks, func(mask uint) bool { return (mask&argumentsBlock != 0) != d.isBlock })

	switch {
	case len(sameForm) == 0 && d.isBlock:
		c.refuse(d, `takes no block; end it with ";"`)
		return false
	case len(sameForm) == 0:
		c.refuse(d, `takes a block; write "{", its directives, and "}"`)
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
