package harness

import (
	"errors"
	"testing"
)

func TestSays(t *testing.T) {
	for name, test := range map[string]struct {
		err, text string
		want      bool
	}{
		"the same":                   {`spec.a: Invalid value: "A": a must be lower-case`, `spec.a: Invalid value: "A": a must`, true},
		"another value":              {`spec.a: Invalid value: "B": a must be lower-case`, `spec.a: Invalid value: "A": a must`, false},
		"the type of a string":       {`spec.a: Invalid value: "string": a must be lower-case`, `spec.a: Invalid value: "A \"b\"": a must`, true},
		"the type of a number":       {`spec.a: Invalid value: "integer": a must be odd`, `spec.a: Invalid value: 2: a must be odd`, true},
		"the type of an object":      {`spec.a: Invalid value: "object": a must have b`, `spec.a: Invalid value: a must have b`, true},
		"the type and another rule":  {`spec.a: Invalid value: "string": a must be short`, `spec.a: Invalid value: "A": a must be lower-case`, false},
		"the type and another field": {`spec.b: Invalid value: "string": a must be short`, `spec.a: Invalid value: "A": a must be short`, false},
		"a text that ends there":     {`spec.a: Invalid value: "string": a must be short`, `spec.a: Invalid value: "A"`, true},
		"no value at all":            {`spec.a: Required value`, `spec.a: Invalid value: "A"`, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Says(errors.New(test.err), test.text); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
	if Says(nil, "") {
		t.Error("no error says something")
	}
}
