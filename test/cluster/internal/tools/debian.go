package tools

import (
	"archive/tar"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/example/nginx-operator/test/cluster/internal/debian"
	"github.com/example/nginx-operator/test/cluster/internal/host"
	"github.com/example/nginx-operator/test/cluster/internal/layout"
)

// debianProgram is a program of a Debian package.
type debianProgram struct {
	suite, pkg string
	// program is its name in the package, if that is not the name of the tool.
	program string
	// major is the major version that the program must print. Without it, the program is not
	// started.
	major string
}

// stamp identifies the source of the program. It has no version: a program from the rolling suite
// is used as long as it exists.
func (p debianProgram) stamp() string { return "Debian " + p.suite + " " + p.pkg }

// unpack installs tools from Debian's packages. It returns the tools that have to be built instead,
// because their package cannot be had or does not work on this machine.
func unpack(ctx context.Context, l layout.Layout, selected []tool, progress *host.Progress) (unsuitable []tool, err error) {
	for _, suite := range []string{debian.Stable, debian.Rolling} {
		wanted := slices.DeleteFunc(slices.Clone(selected), func(t tool) bool { return t.deb.suite != suite })
		if len(wanted) == 0 {
			continue
		}
		err := unpackSuite(ctx, l, suite, wanted, progress)
		if err == nil {
			continue
		}
		if ctx.Err() != nil || slices.ContainsFunc(wanted, func(t tool) bool { return t.pkg == "" }) {
			return nil, host.Unavailable("%w", err)
		}
		progress.Step("%v; it will be built from source", err)
		unsuitable = append(unsuitable, wanted...)
	}
	return unsuitable, nil
}

// unpackSuite installs tools from packages of one suite.
func unpackSuite(ctx context.Context, l layout.Layout, suite string, wanted []tool, progress *host.Progress) error {
	files, err := debian.Fetch(ctx, debian.Packages{Suite: suite, Names: packagesOf(suite)}, l.State(), progress)
	if err != nil {
		return err
	}
	targets := map[string]map[string]string{}
	for _, t := range wanted {
		file, _ := debian.File(files, t.deb.pkg)
		if targets[file] == nil {
			targets[file] = map[string]string{}
		}
		targets[file]["usr/bin/"+cmp.Or(t.deb.program, t.name)] = l.Bin(t.name + ".new")
	}
	for file, programs := range targets {
		if err := extract(file, programs); err != nil {
			return err
		}
	}
	for _, t := range wanted {
		if err := t.deb.check(ctx, l.Bin(t.name+".new")); err != nil {
			return err
		}
	}
	for _, t := range wanted {
		// A running program cannot be overwritten, but it can be replaced.
		if err := os.Rename(l.Bin(t.name+".new"), l.Bin(t.name)); err != nil {
			return fmt.Errorf("failed to install %s: %w", t.name, err)
		}
		if err := host.WriteFile(l.Stamp(t.name), []byte(t.deb.stamp()), 0o600); err != nil {
			return fmt.Errorf("failed to record the source of %s: %w", t.name, err)
		}
	}
	return nil
}

// packagesOf returns the packages of a suite that have tools. They are downloaded together.
func packagesOf(suite string) (names []string) {
	for _, t := range tools {
		if t.deb.suite == suite && !slices.Contains(names, t.deb.pkg) {
			names = append(names, t.deb.pkg)
		}
	}
	return names
}

// extract copies files from a .deb file. targets maps their paths in it to paths on the machine.
func extract(file string, targets map[string]string) error {
	missing := maps.Clone(targets)
	err := debian.Walk(file, func(header *tar.Header, content io.Reader) error {
		target, wanted := missing[path.Clean(header.Name)]
		if !wanted || header.Typeflag != tar.TypeReg {
			return nil
		}
		delete(missing, path.Clean(header.Name))
		data, err := io.ReadAll(content)
		if err != nil {
			return fmt.Errorf("failed to read %s: %w", header.Name, err)
		}
		return host.WriteFile(target, data, 0o755)
	})
	if err == nil && len(missing) > 0 {
		err = fmt.Errorf("failed to find %v in %s", slices.Sorted(maps.Keys(missing)), file)
	}
	return err
}

// check verifies that a program starts on this machine and has the required version.
func (p debianProgram) check(ctx context.Context, program string) error {
	if p.major == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, host.CommandTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, "--version").CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s of Debian's %s does not start: %w: %s", p.pkg, p.suite, err, strings.TrimSpace(string(out)))
	}
	if !regexp.MustCompile(`\b` + p.major + `\.[0-9]+\.[0-9]+`).Match(out) {
		return fmt.Errorf("%s of Debian's %s is not version %s: %s", p.pkg, p.suite, p.major, strings.TrimSpace(string(out)))
	}
	return nil
}
