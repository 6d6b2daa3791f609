// Command demo walks through the four examples on the cluster that kubectl finds, with the steps that their READMEs have.
// The examples have been deployed before (make examples-deploy). It runs in the directory of the repository.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"

	"github.com/example/nginx-operator/examples/test/walkthrough"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	for _, example := range walkthrough.Examples {
		fmt.Printf("\n== %s (examples/%s/README.md)\n\n", example.Kind, example.Directory)
		err := walkthrough.Run(ctx, ".", example, func(command, output string) {
			fmt.Printf("$ %s\n%s", command, output)
			if output != "" && !strings.HasSuffix(output, "\n") {
				fmt.Println()
			}
		})
		if err != nil {
			return fmt.Errorf("%s: %w", example.Kind, err)
		}
	}
	fmt.Println("\nEvery step did what its document says.")
	return nil
}
