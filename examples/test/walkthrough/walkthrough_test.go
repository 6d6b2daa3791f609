package walkthrough

import (
	"os"
	"testing"

	"github.com/example/nginx-operator/test/harness/console"
)

// TestReadmes checks that every README has steps, and shows the output of every step that only
// reads.
func TestReadmes(t *testing.T) {
	for _, example := range Examples {
		raw, err := os.ReadFile("../../" + example.Directory + "/README.md")
		steps := console.Parse(string(raw))
		if err != nil || len(steps) < 4 {
			t.Errorf("%s has %d steps, %v", example.Directory, len(steps), err)
		}
		for _, step := range steps {
			if step.Reads() && len(step.Want) == 0 {
				t.Errorf("%s: %q shows nothing", example.Directory, step.Command)
			}
		}
	}
}
