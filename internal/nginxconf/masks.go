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

	contextHTTP     = 0x002000000
	contextServer   = 0x004000000
	contextLocation = 0x008000000
	contextUpstream = 0x010000000
	contextServerIf = 0x020000000
	contextIf       = 0x040000000
	contextLimit    = 0x080000000
	contextAll      = contextHTTP | contextServer | contextLocation | contextUpstream | contextServerIf | contextIf | contextLimit
)

// contextNames are the names of the contexts in messages.
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
	var names []string
	for _, named := range contextNames {
		if contexts&named.context != 0 {
			names = append(names, named.name)
		}
	}
	return strings.Join(names, " or ")
}
