// Command demo installs the operator on the cluster of the kubeconfig and shows an NGINX instance.
// `make demo` and `make demo-olm` build the images and run the command where the cluster is
// reachable.
//
//	demo       apply config/default, create an instance, and get its page
//	demo olm   the same through OLM, and a page over TLS, a change that fails and is rolled back,
//	           and a change at v1alpha1
//	demo olm check
//	           fail if the cluster has an operator that demo olm did not install
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	operatorNamespace = "nginx-operator-system"
	instanceNamespace = "nginx-demo"
	// stepLimit bounds a step. The commands in it have shorter limits.
	stepLimit = 6 * time.Minute
)

// demo is the shared state of the steps. The Makefile sets the environment variables that newDemo
// reads.
type demo struct {
	root, delivery, version, operatorImage, catalogImage string
	// local reports whether the cluster is the one of test/cluster, whose Services this process can
	// reach.
	local bool
	// run runs a command with a standard input and returns its output. Tests replace it.
	run func(ctx context.Context, stdin, name string, args ...string) (string, error)
}

type step struct {
	name string
	run  func(context.Context) error
}

func main() {
	if err := run(context.Background(), strings.Join(os.Args[1:], " ")); err != nil {
		fmt.Fprintln(os.Stderr, "\ndemo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, command string) error {
	d, err := newDemo()
	if err != nil {
		return err
	}
	// Before these steps, make starts the cluster, installs OLM, and builds the images.
	var steps []step
	made := 2
	switch command {
	case "":
		steps = d.pageSteps()
	case "olm":
		steps, made = d.olmSteps(), 3
	case "olm check":
		return d.refuse(ctx, true)
	default:
		return fmt.Errorf("unknown command %q: run `make demo` or `make demo-olm`", command)
	}
	for i, step := range steps {
		fmt.Printf("==> %d of %d: %s\n", made+i+1, made+len(steps), step.name)
		if err := step.do(ctx); err != nil {
			return err
		}
	}
	fmt.Print(d.next())
	return nil
}

func newDemo() (*demo, error) {
	d := &demo{local: os.Getenv("CLUSTER") == "local", run: runCommand}
	for name, field := range map[string]*string{
		"REPO_ROOT": &d.root, "DELIVERY": &d.delivery, "VERSION": &d.version,
		"OPERATOR_IMAGE": &d.operatorImage, "CATALOG_IMAGE": &d.catalogImage,
	} {
		if *field = os.Getenv(name); *field == "" {
			return nil, fmt.Errorf("%s is not set: run `make demo` or `make demo-olm`", name)
		}
	}
	return d, nil
}

// do runs a step and prints how long it took.
func (s step) do(ctx context.Context) error {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, stepLimit)
	defer cancel()
	if err := s.run(ctx); err != nil {
		return fmt.Errorf("%q failed after %.1f s: %w", s.name, time.Since(began).Seconds(), err)
	}
	fmt.Printf("    done in %.1f s\n", time.Since(began).Seconds())
	return nil
}

// runCommand runs a command. The error contains its stderr.
func runCommand(ctx context.Context, stdin, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = 5 * time.Second
	cmd.Stdin = strings.NewReader(stdin)
	var errOut strings.Builder
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("failed to run %s: %w\n%s", strings.Join(cmd.Args, " "), errors.Join(err, ctx.Err()), errOut.String())
	}
	return string(out), err
}

func (d *demo) kubectl(ctx context.Context, stdin string, args ...string) (string, error) {
	return d.run(ctx, stdin, "kubectl", args...)
}

// get runs kubectl get for objects that may not exist.
func (d *demo) get(ctx context.Context, args ...string) (string, error) {
	return d.kubectl(ctx, "", append([]string{"get", "--ignore-not-found"}, args...)...)
}

// show prints kubectl commands, runs them in a namespace, and prints their output. Arguments must
// not contain blanks.
func (d *demo) show(ctx context.Context, namespace string, commands ...string) error {
	for _, command := range commands {
		out, err := d.announce(ctx, "-n "+namespace+" "+command)
		if err != nil {
			return err
		}
		fmt.Print(indent(out))
	}
	return nil
}

// announce prints a kubectl command, runs it, and returns its output.
func (d *demo) announce(ctx context.Context, command string) (string, error) {
	fmt.Printf("    $ kubectl %s\n", command)
	return d.kubectl(ctx, "", strings.Fields(command)...)
}

// createNamespace creates a namespace. It does not change an existing namespace, which may belong
// to a user. The end-to-end tests delete namespaces with this label.
func (d *demo) createNamespace(ctx context.Context, name string) error {
	_, err := d.kubectl(ctx, fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s, labels: "+
		"{operator.example.com/made-by: demo, pod-security.kubernetes.io/enforce: restricted}}}", name), "create", "--filename=-")
	if err != nil && strings.Contains(err.Error(), "AlreadyExists") {
		err = nil
	}
	return err
}

// file returns the path of a file for the cluster. It is relative to the root of the repository,
// where users run commands.
func (d *demo) file(name string) string {
	return strings.TrimPrefix(filepath.Join(d.delivery, name), d.root+"/")
}

func indent(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n    ") + "\n"
}
