// Command cluster builds, starts and stops a real single-node Kubernetes cluster with OLM for the tests of this
// repository. The cluster lives in a network namespace of its own without a way out, and needs neither Docker nor an
// image registry: its programs are built from the Go module proxy, the rest comes from packages of the distribution.
package main

// This file holds the commands.

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

const usage = `Usage: cluster COMMAND

  build [TOOL...]     build tools from hack/tools into bin/; without a name, those that the cluster needs
  up                  start the cluster, or what is missing of it
  olm                 the same, and OLM in it
  down                stop and remove everything (changed tools take effect with the next up)
  status              print what runs
  logs                print where the logs are
  exec -- CMD ARG...  run a command in the cluster's network; a single argument is run by sh -c
  image build -t IMAGE [-t IMAGE] [-f DOCKERFILE] [--build-arg NAME=VALUE] CONTEXT
                      build an image; FROM can name scratch and every image that the cluster has
  image push IMAGE... push images into the cluster's registry; Pods use them by the same name
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "cluster: "+err.Error())
	code := 1
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() > 0 {
		code = exit.ExitCode()
	}
	os.Exit(code)
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		fmt.Fprint(os.Stderr, usage)
		return errors.New("a command is missing")
	}
	if args[0] == gatewayCommand {
		return serveGateway(ctx)
	}
	repo, err := findRepo()
	if err != nil {
		return err
	}
	progress := newProgress(os.Stderr)
	c := newCluster(newLayout(repo), progress)
	command, args := args[0], args[1:]
	if command != "build" && command != "exec" && command != "image" && len(args) > 0 {
		return fmt.Errorf("%s takes no arguments", command)
	}
	switch command {
	case "build":
		return c.buildTools(ctx, args, progress)
	case "up":
		return c.up(ctx)
	case "olm":
		return c.olm(ctx)
	case "down":
		return c.down(ctx)
	case "status":
		return c.status(ctx)
	case "logs":
		return c.printLogs()
	case "exec":
		if len(args) > 0 && args[0] == "--" {
			args = args[1:]
		}
		if len(args) == 0 {
			return errors.New("exec needs a command")
		}
		return c.exec(args)
	case "image":
		return runImage(ctx, c, args)
	case "help", "-h", "--help":
		fmt.Print(usage)
		return nil
	default:
		fmt.Fprint(os.Stderr, usage)
		return fmt.Errorf("unknown command %q", command)
	}
}

// texts is a flag that can be given more than once.
type texts []string

func (t *texts) String() string { return strings.Join(*t, " ") }

func (t *texts) Set(value string) error {
	*t = append(*t, value)
	return nil
}

func runImage(ctx context.Context, c *cluster, args []string) error {
	if len(args) == 0 {
		return errors.New("image needs a command: build or push")
	}
	switch args[0] {
	case "build":
		var names, buildArgs texts
		flags := flag.NewFlagSet("image build", flag.ContinueOnError)
		flags.Var(&names, "t", "the `name` of the image; may be repeated")
		flags.Var(&buildArgs, "build-arg", "a build argument as `NAME=VALUE`; may be repeated")
		dockerfile := flags.String("f", "", "the `file` with the instructions; default Dockerfile in the context")
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		if len(names) == 0 || flags.NArg() != 1 {
			return errors.New("image build needs -t IMAGE and one context folder")
		}
		if *dockerfile == "" {
			*dockerfile = filepath.Join(flags.Arg(0), "Dockerfile")
		}
		return c.imageBuild(ctx, names, *dockerfile, flags.Arg(0), buildArgs)
	case "push":
		if len(args) == 1 {
			return errors.New("image push needs an image")
		}
		return c.imagePush(ctx, args[1:])
	default:
		return fmt.Errorf("unknown command image %q: build or push", args[0])
	}
}

// printLogs says where the logs of the components are.
func (l layout) printLogs() error {
	fmt.Println(l.logs())
	for _, component := range components {
		fmt.Printf("%-24s %s\n", component.name, l.log(component.name))
	}
	fmt.Printf("%-24s %s\n", "audit log", l.auditLog())
	fmt.Printf("%-24s %s\n", "Pods", l.logs("pods"))
	return nil
}
