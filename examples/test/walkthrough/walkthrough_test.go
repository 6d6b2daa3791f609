package walkthrough

import (
	"testing"

	"github.com/example/nginx-operator/test/harness/console"
)

// TestReadmes checks that every README has steps, and shows the output of every step that only
// reads.
func TestReadmes(t *testing.T) {
	for _, example := range Examples {
		steps, err := console.Steps("../../" + example.Directory)
		if err != nil || len(steps) < 4 {
			t.Errorf("%s has %d steps, %v", example.Directory, len(steps), err)
		}
		for _, step := range steps {
			if console.Reads(&step) && step.Answer == "" {
				t.Errorf("%s: %q shows nothing", example.Directory, step.Script)
			}
		}
	}
}
