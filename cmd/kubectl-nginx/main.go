// Command kubectl-nginx is the plugin for `kubectl nginx`. It shows, previews, and changes NGINX
// instances, with the permissions of its user.
package main

import (
	"context"
	"os"

	"github.com/go-logr/logr"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/example/nginx-operator/cmd/kubectl-nginx/command"
)

// version is the content of the file VERSION. The linker sets it.
var version = "dev"

func main() {
	ctrl.SetLogger(logr.Discard())
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	os.Exit(command.Run(context.Background(), os.Args[1:], streams, version))
}
