// Command demo walks through the four examples on the cluster that kubectl finds, with the steps that their READMEs have.
// The examples have been deployed before (make examples-deploy). It runs in the directory of the repository.
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
