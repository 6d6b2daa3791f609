package tools

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/example/nginx-operator/test/cluster/internal/host"
	"github.com/example/nginx-operator/test/cluster/internal/layout"
)

// buildLimit bounds one build, including the download of modules over a slow connection.
const buildLimit = time.Hour

// group is a set of tools that one go build command builds.
type group struct {
	module string
	tools  []tool
	args   []string
	// stamp is a digest of all inputs of the tools. If it equals the stamp of the last build, the
	// tools are up to date.
	stamp string
}

// output returns the value of -o: the file for a single tool, or the directory for several tools.
func (g group) output(binDir string) string {
	file := filepath.Join(binDir, g.tools[0].name)
	if len(g.tools) == 1 {
		return file
	}
	return filepath.Dir(file) + string(filepath.Separator)
}

// groupTools groups tools that one command can build: tools of the same module with the same flags
// in the same directory.
// A tool whose name differs from Go's default name is a group of its own.
func groupTools(l layout.Layout, selected []tool, goVersion string) ([]group, error) {
	index := map[string]int{}
	var groups []group
	for _, t := range selected {
		args, stamp, err := buildArgs(l, t, goVersion)
		if err != nil {
			return nil, err
		}
		key := t.module + "\x00" + path.Dir(t.name) + "\x00" + strings.Join(args, "\x00")
		if path.Base(t.pkg) != path.Base(t.name) {
			key += "\x00" + t.name
		}
		i, ok := index[key]
		if !ok {
			i = len(groups)
			index[key] = i
			groups = append(groups, group{module: t.module, args: args, stamp: stamp})
		}
		groups[i].tools = append(groups[i].tools, t)
	}
	return groups, nil
}

// buildArgs returns the arguments of go build, and a digest of all inputs of the tool.
func buildArgs(l layout.Layout, t tool, goVersion string) (args []string, stamp string, err error) {
	gomod, err := os.ReadFile(filepath.Join(l.ToolModule(t.module), "go.mod"))
	if err != nil {
		return nil, "", fmt.Errorf("failed to read the module of %s: %w", t.name, err)
	}
	gosum, err := os.ReadFile(filepath.Join(l.ToolModule(t.module), "go.sum"))
	if err != nil {
		return nil, "", fmt.Errorf("failed to read the module of %s: %w", t.name, err)
	}
	ldflags := []string{"-s", "-w"}
	if t.ldflags != nil {
		more, err := t.ldflags(parseRequirements(string(gomod)))
		if err != nil {
			return nil, "", err
		}
		ldflags = append(ldflags, more...)
	}
	args = []string{"-trimpath", "-ldflags", strings.Join(ldflags, " ")}
	if t.tags != "" {
		args = append(args, "-tags", t.tags)
	}
	sum := sha256.New()
	sum.Write(gomod)
	sum.Write(gosum)
	fmt.Fprintln(sum, goVersion, runtime.GOOS, runtime.GOARCH, args)
	return args, hex.EncodeToString(sum.Sum(nil)), nil
}

// upToDate reports whether a program exists and was built from the inputs with this stamp.
func upToDate(l layout.Layout, name, stamp string) bool {
	data, err := os.ReadFile(l.Stamp(name))
	if err != nil || string(data) != stamp {
		return false
	}
	_, err = os.Stat(l.Bin(name))
	return err == nil
}

// Build builds the named tools that are not up to date. Without names, it builds the tools that the
// cluster requires.
func Build(ctx context.Context, l layout.Layout, names []string, progress *host.Progress) error {
	selected, err := selectTools(l, names)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "env", "GOVERSION")
	cmd.Dir = l.Repo
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("failed to find out the version of Go: %w", host.CommandError(err))
	}
	groups, err := groupTools(l, selected, strings.TrimSpace(string(out)))
	if err != nil {
		return err
	}
	for _, g := range groups {
		g.tools = slices.DeleteFunc(g.tools, func(t tool) bool { return upToDate(l, t.name, g.stamp) })
		if len(g.tools) == 0 {
			continue
		}
		if err := buildGroup(ctx, l, g, progress); err != nil {
			return err
		}
	}
	return nil
}

func buildGroup(ctx context.Context, l layout.Layout, g group, progress *host.Progress) error {
	names := make([]string, 0, len(g.tools))
	args := append([]string{"build", "-o", g.output(l.Bin(""))}, g.args...)
	for _, t := range g.tools {
		names = append(names, t.name)
		args = append(args, t.pkg)
	}
	progress.Step("building %s (the first time takes minutes)", strings.Join(names, " "))
	ctx, cancel := context.WithTimeout(ctx, buildLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = l.ToolModule(g.module)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-mod=readonly")
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("failed to build %s: %w", strings.Join(names, " "), err)
	}
	for _, t := range g.tools {
		if err := host.WriteFile(l.Stamp(t.name), []byte(g.stamp), 0o600); err != nil {
			return fmt.Errorf("failed to record the build of %s: %w", t.name, err)
		}
	}
	return nil
}

// BuildPause compiles the program of the pause image from the source of Kubernetes.
func BuildPause(ctx context.Context, l layout.Layout, progress *host.Progress) error {
	version, err := Kubernetes.Version(l)
	if err != nil || upToDate(l, "pause", version) {
		return err
	}
	progress.Step("building pause")
	dir, err := Kubernetes.Dir(ctx, l)
	if err != nil {
		return err
	}
	source := filepath.Join(dir, "build", "pause", "linux", "pause.c")
	_, tag, _ := strings.Cut(layout.PauseImage, ":")
	err = host.Run(ctx, "gcc", "-Os", "-Wall", "-static", "-s", "-DVERSION=v"+tag, "-o", l.Bin("pause"), source)
	if err != nil {
		return host.Unavailable("the C compiler does not work: %w", err)
	}
	if err := host.WriteFile(l.Stamp("pause"), []byte(version), 0o600); err != nil {
		return fmt.Errorf("failed to record the build of pause: %w", err)
	}
	return nil
}
