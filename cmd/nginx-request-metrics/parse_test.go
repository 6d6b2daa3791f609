package main

import (
	"bytes"
	"math"
	"strings"
	"testing"
)

const header = "<190>Nov 30 20:06:00 nginx_requests: "

func TestParse(t *testing.T) {
	for name, test := range map[string]struct {
		fields string
		want   [fieldCount]float64
		server string
	}{
		"without upstream":  {"1|200|0.012|512|78|-|shop.example.com", [...]float64{200, 0.012, 512, 78, none}, "shop.example.com"},
		"one upstream":      {"1|502|1.500|0|78|1.499|shop", [...]float64{502, 1.5, 0, 78, 1.499}, "shop"},
		"several upstreams": {"1|200|1.000|1|1|0.125, 0.250 : 0.500|shop", [...]float64{200, 1, 1, 1, 0.875}, "shop"},
		"no response":       {"1|504|1.000|1|1|-, 0.250|shop", [...]float64{504, 1, 1, 1, 0.25}, "shop"},
		"only failures":     {"1|504|1.000|1|1|-, -|shop", [...]float64{504, 1, 1, 1, none}, "shop"},
		"no name":           {"1|200|0.000|1|1|-|", [...]float64{200, 0, 1, 1, none}, ""},
		"odd name":          {`1|200|0.000|1|1|-|~^(a|b) c\x5C.d$`, [...]float64{200, 0, 1, 1, none}, `~^(a|b) c\x5C.d$`},
		"no status":         {"1|000|0.000|0|0|-|shop", [...]float64{0, 0, 0, 0, none}, "shop"},
		"large":             {"1|200|86400.000|1099511627776|1|-|shop", [...]float64{200, 86400, 1 << 40, 1, none}, "shop"},
	} {
		t.Run(name, func(t *testing.T) {
			numbers, server, valid := parse([]byte(header + test.fields))
			if numbers != test.want || string(server) != test.server || !valid {
				t.Errorf("%v %q %t", numbers, server, valid)
			}
		})
	}
}

func TestInvalid(t *testing.T) {
	for name, datagram := range map[string]string{
		"empty":               "",
		"text":                "hello",
		"no header":           " nginx_requests: 1|200|0.000|1|1|-|shop",
		"other tag":           "<190>Nov 30 20:06:00 nginx: 1|200|0.000|1|1|-|shop",
		"other version":       header + "2|200|0.000|1|1|-|shop",
		"no server":           header + "1|200|0.000|1|1|-",
		"no status":           header + "1||0.000|1|1|-|shop",
		"unknown duration":    header + "1|200|-|1|1|-|shop",
		"negative size":       header + "1|200|0.000|-1|1|-|shop",
		"negative list":       header + "1|200|0.000|1|1|0.1, -0.1|shop",
		"not a number":        header + "1|200|NaN|1|1|-|shop",
		"infinite":            header + "1|200|+Inf|1|1|-|shop",
		"too large":           header + "1|200|0.000|1e300|1|-|shop",
		"text instead of one": header + "1|ok|0.000|1|1|-|shop",
		"truncated":           header + "1|200|0.000|1|1|" + strings.Repeat("0.001, ", longestMessage),
	} {
		t.Run(name, func(t *testing.T) {
			if numbers, server, valid := parse([]byte(datagram)); valid {
				t.Errorf("%v %q", numbers, server)
			}
		})
	}
}

// FuzzParse checks that all numbers of valid messages are sums that counters accept, and that
// labels are valid and bounded, whatever a datagram has.
func FuzzParse(f *testing.F) {
	for _, fields := range []string{"1|200|0.012|512|78|0.1, - : 0.2|shop", `1|200|0.000|1|1|-|\xFF\x41`, "1|009|1e2|1|1|-|", "2|"} {
		f.Add([]byte(header + fields))
	}
	f.Fuzz(func(t *testing.T, datagram []byte) {
		numbers, server, valid := parse(datagram)
		if !valid {
			return
		}
		for i, number := range numbers {
			if math.IsNaN(number) || math.IsInf(number, 0) || number < 0 && (number != none || i != upstream) {
				t.Errorf("number %d is %v", i, number)
			}
		}
		if !bytes.HasSuffix(datagram, server) {
			t.Errorf("%q does not end with %q", datagram, server)
		}
		name := labelValue(server)
		if name == "" || name != strings.ToValidUTF8(name, "") || len(name) > max(1, len(server)) {
			t.Errorf("the label of %q is %q", server, name)
		}
	})
}
