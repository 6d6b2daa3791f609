// Command site renders docs/ of this release and of all older ones to dist/site, and checks the
// result in Chromium. The Makefile runs it in the root of the repository.
//
//	site build [-base PATH]          render the site. PATH is where it is published; the default
//	                                 is /
//	site check [-base PATH]          open each page at two widths, and report overflow, dead
//	                                 links, diagrams that are not rendered, errors of scripts, and
//	                                 violations of accessibility rules
//	site pictures                    draw docs/pictures from what dist/pictures has of a running
//	                                 cluster
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
)

const (
	outputDir  = "dist/site"
	workDir    = "dist/site-work"
	packageDir = "dist/npm"
	repository = "https://github.com/example/nginx-operator"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("name a command: build, check, or pictures")
	}
	flags := flag.NewFlagSet("site "+args[0], flag.ContinueOnError)
	base := flags.String("base", "/", "`path` of the URL of the site, with a slash at both ends")
	if err := flags.Parse(args[1:]); err != nil {
		return fmt.Errorf("failed to read the flags: %w", err)
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unknown argument %q", flags.Arg(0))
	}
	if !strings.HasPrefix(*base, "/") || !strings.HasSuffix(*base, "/") || strings.HasPrefix(*base, "//") {
		return fmt.Errorf("-base %q has no slash at both ends; an example is /nginx-operator/", *base)
	}
	switch args[0] {
	case "build":
		return build(ctx, *base)
	case "check":
		return check(ctx, *base)
	case "pictures":
		return pictures(ctx)
	default:
		return fmt.Errorf("unknown command %q; the commands are build, check, and pictures", args[0])
	}
}
