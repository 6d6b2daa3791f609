package harness

import (
	"errors"
	"testing"
)

func TestSays(t *testing.T) {
	for name, test := range map[string]struct {
		err, text    string
		newer, older bool
	}{
		"the same":                   {`spec.a: Invalid value: "A": a must be short`, `spec.a: Invalid value: "A": a must`, true, true},
		"another value":              {`spec.a: Invalid value: "B": a must be short`, `spec.a: Invalid value: "A": a must`, false, true},
		"the type of a string":       {`spec.a: Invalid value: "string": a must be short`, `spec.a: Invalid value: "A \"b\"": a must`, false, true},
		"the type of a number":       {`spec.a: Invalid value: "integer": a must be odd`, `spec.a: Invalid value: 2: a must be odd`, false, true},
		"the type of an object":      {`spec.a: Invalid value: "object": a must have b`, `spec.a: Invalid value: a must have b`, false, true},
		"no quotes":                  {`spec.a: Invalid value: disk: a must be short`, `spec.a: Invalid value: "disk"`, false, true},
		"another form of an object":  {`spec.a[1]: Duplicate value: map[string]interface {}{"b":"c"}`, `spec.a[1]: Duplicate value: {"b":"c"}`, false, true},
		"another duplicate":          {`spec.a[1]: Duplicate value: {"b":"d"}`, `spec.a[1]: Duplicate value: {"b":"c"}`, false, false},
		"the type and another rule":  {`spec.a: Invalid value: "string": a must be short`, `spec.a: Invalid value: "A": a must be long`, false, false},
		"the type and another field": {`spec.b: Invalid value: "string": a must be short`, `spec.a: Invalid value: "A": a must be short`, false, false},
		"no value at all":            {`spec.a: Required value`, `spec.a: Invalid value: "A"`, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			for path, want := range map[string]bool{"": test.newer, "kube-apiserver": test.older} {
				t.Setenv(olderAPIServer, path)
				if got := Says(errors.New(test.err), test.text); got != want || Says(nil, "") {
					t.Errorf("on API server %q: got %t, want %t", path, got, want)
				}
			}
		})
	}
}
