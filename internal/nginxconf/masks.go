package nginxconf

import (
	"fmt"
	"math/bits"
	"strings"
)

// The bits of crossplane's tables: the number of arguments, and the contexts of a directive.
// crossplane does not export their names. A test compares them with crossplane's results.
const (
	argumentsNone   = 0x00000001
	argumentsOne    = 0x00000002
	argumentsTwo    = 0x00000004
	argumentsBlock  = 0x00000100
	argumentsFlag   = 0x00000400
	argumentsAny    = 0x00000800
	argumentsOneUp  = 0x00001000
	argumentsTwoUp  = 0x00002000
	argumentsCounts = 0x0000007f

	contextMain     = 0x000040000
	contextEvents   = 0x000080000
	contextHTTP     = 0x002000000
	contextServer   = 0x004000000
	contextLocation = 0x008000000
	contextUpstream = 0x010000000
	contextServerIf = 0x020000000
	contextIf       = 0x040000000
	contextLimit    = 0x080000000
	contextAll      = contextHTTP | contextServer | contextLocation | contextUpstream | contextServerIf | contextIf | contextLimit
	contextOuter    = contextMain | contextEvents
)

// contextNames are the names of the contexts in messages. Each directive has one of the first six.
var contextNames = []struct {
	context uint
	name    string
}{
	{contextHTTP, "out of all blocks"},
	{contextServer, "into a server block"},
	{contextLocation, "into a location block"},
	{contextUpstream, "into an upstream block"},
	{contextMain, "to spec.nginx.main"},
	{contextEvents, "to spec.nginx.events"},
}

// mapBlocks are the blocks whose entries are not directives.
var mapBlocks = []string{"map", "geo", "split_clients", "types", "charset_map", "geoip2", "match", "otel_exporter"}

// takes reports whether a mask allows a number of arguments.
func takes(mask uint, count int) bool {
	return mask&argumentsAny != 0 ||
		mask&argumentsOneUp != 0 && count >= 1 ||
		mask&argumentsTwoUp != 0 && count >= 2 ||
		count < 7 && mask&argumentsCounts>>count&1 != 0
}

// counts describes the numbers of arguments that masks allow.
func counts(masks []uint) string {
	var all uint
	for _, mask := range masks {
		all |= mask
	}

	switch {
	case all&argumentsOneUp != 0:
		return "1 or more"
	case all&argumentsTwoUp != 0:
		return "2 or more"
	case all&argumentsFlag != 0:
		return `1 ("on" or "off")`
	}

	var numbers []string
	for rest := all & argumentsCounts; rest != 0; rest &= rest - 1 {
		numbers = append(numbers, fmt.Sprint(bits.TrailingZeros(rest)))
	}
	return strings.Join(numbers, " or ")
}

// places describes contexts. from is the context of the directive.
func places(contexts, from uint) string {
	if from&contextOuter != 0 && contexts&contextAll != 0 {
		return "to spec.config"
	}

	var names []string
	for _, named := range contextNames {
		if contexts&named.context != 0 {
			names = append(names, named.name)
		}
	}
	return strings.Join(names, ", or ")
}
