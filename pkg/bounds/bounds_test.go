package bounds

import (
	"strings"
	"testing"
)

// TestJSON verifies the errors of JSON. In each case, want is a part of the error, or "" for no
// error.
func TestJSON(t *testing.T) {
	nested := func(depth int) string { return strings.Repeat("[", depth) + strings.Repeat("]", depth) }
	for name, test := range map[string]struct{ text, want string }{
		"an object":                 {`{"a":[1,{"b":"c"}]}`, ""},
		"brackets and commas in it": {`{"a":"` + strings.Repeat(`[{,\"`, MaxValues) + `"}`, ""},
		"as deep as may be":         {nested(MaxDepth), ""},
		"deeper":                    {nested(MaxDepth + 1), "exceeds the limit of 64 levels of nesting"},
		"as many as may be":         {"[" + strings.Repeat("0,", MaxValues-2) + "0]", ""},
		"one more":                  {"[" + strings.Repeat("0,", MaxValues-1) + "0]", "exceeds the limit of 16384 values"},
		"empty ones":                {strings.Repeat("{}", MaxValues), "exceeds the limit of 16384 values"},
		"too long":                  {strings.Repeat(" ", MaxBytes+1), "exceeds the limit of 3145728 bytes"},
		"cut off in a text":         {`{"a\`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := JSON([]byte(test.text))
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("want %q, got %v", test.want, err)
			}
		})
	}
}

// TestIsQuantity verifies that only quantities that are cheap to compute are accepted.
func TestIsQuantity(t *testing.T) {
	for value, want := range map[any]bool{
		"1": true, "500m": true, "128Mi": true, "1.5G": true, ".5": true, "5.": true, "+1": true, "-1": true, "1E": true, "1e3": true,
		"1E-10": true, "1e+99": true, int64(1): true, 0.5: true, strings.Repeat("9", 32): true,
		"1e100": false, "1e-1000000000": false, "1e1000000000": false, "1e1.5": false, "1e.5": false, "": false, "many": false, "1 ": false,
		"1\n": false, strings.Repeat("9", 33): false, 1e300: false, true: false, nil: false,
	} {
		if got := IsQuantity(value); got != want {
			t.Errorf("%v: %t, want %t", value, got, want)
		}
	}
}
