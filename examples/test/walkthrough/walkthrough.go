// Package walkthrough does the steps of an example's README, which are those of its source document, so that the demo and the tests on a
// cluster do exactly what the README says and see what it shows.
package walkthrough

import (
	"context"
	"path/filepath"

	"github.com/example/nginx-operator/test/harness/console"
)

// Example is what can be walked through: its directory under examples/, and the kind of its objects.
type Example struct{ Directory, Kind string }

// Examples are all examples, in the order in which they are shown.
var Examples = []Example{{"foo", "Foo"}, {"activity", "Activity"}, {"myapp", "MyApp"}, {"sidecarset", "SidecarSet"}}

// Run does the steps of one example's README against the cluster that kubectl finds, and shows each with its output. What an earlier run
// left is removed first, its Events included: they are found by name.
func Run(ctx context.Context, repository string, example Example, show func(command, output string)) error {
	clean := console.Step{Command: `for file in sample *.yaml; do
  test ! -e "$file" || kubectl delete --ignore-not-found --grace-period=1 -f "$file" || exit
done
kubectl delete events --field-selector=involvedObject.kind=` + example.Kind}
	return console.Run(ctx, filepath.Join(repository, "examples", example.Directory), clean, show)
}
