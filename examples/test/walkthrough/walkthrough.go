// Package walkthrough runs the steps of an example's README, so that the demo and the tests on a
// cluster do exactly what the README describes and see the output that it shows.
package walkthrough

import (
	"context"
	"path/filepath"

	"github.com/example/nginx-operator/test/harness/console"
)

// Example is an example with its directory below examples/ and the kind of its objects.
type Example struct{ Directory, Kind string }

// Examples are all examples, in the order of the demo.
var Examples = []Example{{"foo", "Foo"}, {"activity", "Activity"}, {"myapp", "MyApp"}, {"sidecarset", "SidecarSet"}}

// Run runs the steps of one example's README on the cluster of the kubeconfig, and calls show for
// each with its output. First it deletes the objects of an earlier run. It also deletes their
// Events, because the steps find Events by object name.
func Run(ctx context.Context, repository string, example Example, show func(command, output string)) error {
	const clean = `for file in sample *.yaml; do
  test ! -e "$file" || kubectl delete --ignore-not-found --grace-period=1 -f "$file" || exit
done
kubectl delete events --field-selector=involvedObject.kind=`
	return console.Run(ctx, filepath.Join(repository, "examples", example.Directory), clean+example.Kind, show)
}
