package nginxconf

import (
	"path"
	"slices"
	"strings"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// owned are directives of the main and events contexts that a user must not set, and the blocks
// events, http, stream, and mail. Each has the reason and the remedy.
var owned = map[string]string{
	"daemon":                  "nginx must run in the foreground. Remove it",
	"master_process":          "the master process drains connections. Remove it",
	"pid":                     "the operator sets it. Remove it",
	"user":                    "nginx starts without root permissions and cannot change its user. Remove it",
	"worker_processes":        "the operator sets it. Remove it and set spec.nginx.workerProcesses",
	"worker_shutdown_timeout": "the operator sets it. Remove it and set spec.drainSeconds",
	"events":                  "the operator sets it. Remove the block and put its directives into spec.nginx.events",
	"worker_connections":      "the operator sets it. Remove it and set spec.nginx.workerConnections",
	"http":                    "the operator sets it. Remove the block and put its content into spec.config",
	"stream":                  servesHTTP,
	"mail":                    servesHTTP,
	"env":                     "the operator sets it. Remove it and declare the variable in spec.env",
	"load_module":             "the operator loads modules. Remove it and set spec.nginx.modules",
	"lock_file":               "nginx needs no lock file on Linux. Remove it",
}

const (
	servesHTTP = "the operator serves HTTP only. Remove it"
	// loadedByField is for load_module.
	loadedByField = "the operator loads modules. Remove it and add %s to spec.nginx.modules"

	// notHere, unknown, and badCount are nginx's own words.
	notHere  = `"%s" directive is not allowed here`
	unknown  = `unknown directive "%s"`
	badCount = `invalid number of arguments in "%s" directive`
)

// isOwned reports whether a user must not set a directive, and adds the problem.
func (c *checker) isOwned(d *directive) bool {
	instead := owned[d.name]
	switch {
	case d.name == "load_module" && d.first() != "":
		c.refuse(d, notHere+": "+loadedByField, d.name, strings.TrimSuffix(path.Base(d.first()), ".so"))
		return true
	case d.name == "error_log" && d.context == contextMain:
		instead = "the operator sets it. Remove it and set spec.nginx.errorLogLevel"
	case d.name == "env" && d.context == contextMain && c.hasVariable(d.first()):
		return false
	}

	if instead != "" {
		c.refuse(d, notHere+": "+instead, d.name)
	}
	return instead != ""
}

// hasVariable reports whether spec.env has the variable of an env directive.
func (c *checker) hasVariable(declaration string) bool {
	name, _, _ := strings.Cut(declaration, "=")
	return slices.ContainsFunc(c.spec.Env, func(variable v1alpha2.EnvVar) bool { return variable.Name == name })
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
	if c.isOwned(d) {
		return false
	}

	masks := c.masksOf(d.name)
	if len(masks) == 0 {
		c.refuseIfKnown(d, unknown+". "+unknownRemedy(d.name), d.name)
		return false
	}
	if c.needsLoading(d.name) {
		c.warn(d, unknown+". "+unknownRemedy(d.name), d.name)
	}

	var here []uint
	var elsewhere uint
	for _, mask := range masks {
		if mask&d.context != 0 {
			here = append(here, mask)
		}
		elsewhere |= mask & (contextAll | contextOuter)
	}

	switch {
	case len(here) > 0:
		return c.checkArguments(d, here)
	case elsewhere == 0:
		c.refuse(d, notHere+": "+servesHTTP, d.name)
	default:
		c.refuse(d, notHere+". Move it "+places(elsewhere, d.context), d.name)
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
			if value := strings.ToLower(d.args[0]); value == "on" || value == "off" || c.isUnknown(d) {
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
