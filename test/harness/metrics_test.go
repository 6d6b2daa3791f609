package harness

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSamples(t *testing.T) {
	const metrics = `# HELP depth How deep it is.
# TYPE depth gauge
depth{name="a b",priority="0"} 3
depth{name="c"} 1e+06
depth_total 4
plain 0.5
broken{name="a"} many
`
	for name, want := range map[string][]Sample{
		"depth": {
			{map[string]string{"name": "a b", "priority": "0"}, 3},
			{map[string]string{"name": "c"}, 1e6},
		},
		"plain":  {{map[string]string{}, 0.5}},
		"broken": nil,
		"none":   nil,
	} {
		got, err := Samples(metrics, name)
		if diff := cmp.Diff(want, got); diff != "" || (err != nil) != (want == nil) {
			t.Errorf("%s (-want +got), %v:\n%s", name, err, diff)
		}
	}
}
