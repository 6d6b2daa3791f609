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
		"the same":               {`a: Invalid value: "A": too long`, `a: Invalid value: "A": too`, true, true},
		"another value":          {`a: Invalid value: "B": too long`, `a: Invalid value: "A": too`, false, true},
		"the type of a string":   {`a: Invalid value: "string": too long`, `a: Invalid value: "A \"b\"": too`, false, true},
		"the type of a number":   {`a: Invalid value: "integer": not odd`, `a: Invalid value: 2: not odd`, false, true},
		"the type of an object":  {`a: Invalid value: "object": b is missing`, `a: Invalid value: b is missing`, false, true},
		"a message with a word":  {`a: Invalid value: "object": ports: too many`, `a: Invalid value: ports: too many`, false, true},
		"no quotes":              {`a: Invalid value: disk: too long`, `a: Invalid value: "disk"`, false, true},
		"another form of a map":  {`a[1]: Duplicate value: map[string]interface {}{"b":"c"}`, `a[1]: Duplicate value: {"b":"c"}`, false, true},
		"another duplicate":      {`a[1]: Duplicate value: {"b":"d"}`, `a[1]: Duplicate value: {"b":"c"}`, false, false},
		"type and another rule":  {`a: Invalid value: "string": too long`, `a: Invalid value: "A": too short`, false, false},
		"type and another field": {`b: Invalid value: "string": too long`, `a: Invalid value: "A": too long`, false, false},
		"no value at all":        {`a: Required value`, `a: Invalid value: "A"`, false, false},
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
