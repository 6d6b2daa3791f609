// Command cluster builds, starts, and stops a real single-node Kubernetes cluster for the tests of
// this repository. The cluster runs in its own network namespace without outside access. It needs
// neither Docker nor an image registry: its programs are built from the Go module proxy or come
// from packages of Debian.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/example/nginx-operator/test/cluster/internal/cluster"
	"github.com/example/nginx-operator/test/cluster/internal/host"
	"github.com/example/nginx-operator/test/cluster/internal/images"
	"github.com/example/nginx-operator/test/cluster/internal/layout"
	"github.com/example/nginx-operator/test/cluster/internal/registry"
	"github.com/example/nginx-operator/test/cluster/internal/tools"
)

const usage = `Usage: cluster COMMAND

  build [TOOL...]     install tools into bin/; without a name, those that a cluster without other parts needs
  up [PART...]        start the cluster, or what is missing of it, for a page; a PART is what else it has:
                        metrics    metrics-server
                        exporter   the image of nginx-prometheus-exporter
                        scorecard  the image of the scorecard
                        olm        OLM
                        olm-v1     OLM v1 and cert-manager
  down                stop and remove everything (changed tools take effect with the next up)
  status              print what runs, and its logs
  exec -- CMD ARG...  run a command in the cluster's network; a single argument is run by sh -c
  image build -t IMAGE [-t IMAGE] [-f DOCKERFILE] [--build-arg NAME=VALUE] [--timestamp SECONDS] CONTEXT
                      build an image; FROM can name scratch and every image that the cluster has
  image push IMAGE... push images into the cluster's registry; Pods use them by the same name
  nginx SUITE...      make images with the nginx of suites of Debian, tagged debian-SUITE; the cluster starts with one
  peers               make the images of the programs that recipes of the documentation run next to nginx

CLUSTER_KUBERNETES=oldest starts a cluster with the oldest supported Kubernetes instead of the newest.
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
	if args[0] == registry.GatewayCommand {
		return registry.ServeGateway(ctx)
	}
	repo, err := layout.FindRepo()
	if err != nil {
		return err
	}
	l, progress := layout.New(repo), host.NewProgress()
	if l.Oldest, err = oldest(os.Getenv("CLUSTER_KUBERNETES")); err != nil {
		return err
	}
	c := cluster.New(l, progress)
	command, args := args[0], args[1:]
	if plain, ok := map[string]func(context.Context) error{"down": c.Down, "status": c.Status, "peers": c.PushPeers}[command]; ok {
		if len(args) > 0 {
			return fmt.Errorf("%s takes no arguments", command)
		}
		return plain(ctx)
	}
	switch command {
	case "up":
		parts, err := layout.ParseParts(args)
		if err != nil {
			return err
		}
		return c.Up(ctx, parts)
	case "build":
		return build(ctx, l, args, progress)
	case "exec":
		if len(args) > 0 && args[0] == "--" {
			args = args[1:]
		}
		if len(args) == 0 {
			return errors.New("exec needs a command")
		}
		return c.Exec(args)
	case "image":
		return runImage(ctx, c, args)
	case "nginx":
		if len(args) == 0 {
			return errors.New("nginx needs a suite of Debian")
		}
		return c.PushNginx(ctx, args)
	case "help", "-h", "--help":
		fmt.Print(usage)
		return nil
	default:
		fmt.Fprint(os.Stderr, usage)
		return fmt.Errorf("unknown command %q", command)
	}
}

// oldest reports whether a value of CLUSTER_KUBERNETES selects the oldest supported Kubernetes.
func oldest(value string) (bool, error) {
	switch value {
	case "", "newest":
		return false, nil
	case "oldest":
		return true, nil
	}
	return false, fmt.Errorf("unknown CLUSTER_KUBERNETES %q: set newest or oldest", value)
}

// build installs the named tools, or those of the base.
func build(ctx context.Context, l layout.Layout, names []string, progress *host.Progress) error {
	if len(names) == 0 {
		names = tools.OfParts(l, []layout.Part{layout.Base})
	}
	return tools.Build(ctx, l, names, progress, func(context.Context) error { return nil })
}

func runImage(ctx context.Context, c *cluster.Cluster, args []string) error {
	if len(args) == 0 {
		return errors.New("image needs a command: build or push")
	}
	switch args[0] {
	case "build":
		var build images.Build
		flags := flag.NewFlagSet("image build", flag.ContinueOnError)
		flags.Func("t", "the `name` of the image; may be repeated", appendTo(&build.Names))
		flags.Func("build-arg", "a build argument as `NAME=VALUE`; may be repeated", appendTo(&build.Args))
		flags.StringVar(&build.Dockerfile, "f", "", "the `file` with the instructions; default Dockerfile in the context")
		flags.StringVar(&build.Timestamp, "timestamp", "", "the time of the image and its files, in `seconds` since 1970; default now")
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		if len(build.Names) == 0 || flags.NArg() != 1 {
			return errors.New("image build needs -t IMAGE and one context directory")
		}
		build.Context = flags.Arg(0)
		build.Dockerfile = cmp.Or(build.Dockerfile, filepath.Join(build.Context, "Dockerfile"))
		return c.BuildImage(ctx, build)
	case "push":
		if len(args) == 1 {
			return errors.New("image push needs an image")
		}
		return c.PushImages(ctx, args[1:])
	default:
		return fmt.Errorf("unknown command image %q: build or push", args[0])
	}
}

// appendTo returns the function of a flag that can be repeated.
func appendTo(values *[]string) func(string) error {
	return func(value string) error {
		*values = append(*values, value)
		return nil
	}
}
