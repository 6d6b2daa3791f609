// Command demo runs the steps of the four examples' READMEs on the cluster of the kubeconfig. The
// examples must be deployed (make examples-deploy). It runs in the root of the repository.
package main

import (
	"fmt"
	"os"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/example/nginx-operator/examples/test/walkthrough"
)

func main() {
	ctx := ctrl.SetupSignalHandler()
	show := func(command, output string) { fmt.Printf("$ %s\n%s", command, output) }
	for _, example := range walkthrough.Examples {
		fmt.Printf("\n== %s (examples/%s/README.md)\n\n", example.Kind, example.Directory)
		if err := walkthrough.Run(ctx, ".", example, show); err != nil {
			fmt.Fprintf(os.Stderr, "demo: %s: %v\n", example.Kind, err)
			os.Exit(1)
		}
	}
	fmt.Println("\nEvery step did what its document says.")
}
