package tools

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/example/nginx-operator/test/cluster/internal/host"
	"github.com/example/nginx-operator/test/cluster/internal/layout"
)

const (
	// buildLimit bounds one build, including the download of modules over a slow connection.
	buildLimit = time.Hour
	// Flags are the flags of every go command of this repository, which the Makefile exports.
	// Programs with the same flags share compiled packages. A test compares the two.
	Flags = "-trimpath -buildvcs=false -gcflags=all=-dwarf=false -ldflags=-s"
)

// compilerLimits let the compiler and the linker collect no garbage up to a limit, which takes a
// fifth less time. Two of them run at the same time in 4 GB of memory.
var compilerLimits = map[string]string{"GOGC": "off", "GOMEMLIMIT": "1GiB"}

// usual are the times for the tools of a module that two processors need, with empty caches and
// after Kubernetes was built.
var usual = map[string]string{
	"kubernetes": "8 minutes", layout.OldestKubernetes: "8 minutes", "coredns": "10 seconds", "containerd": "90 seconds",
}

// byModule groups tools by their module. A module's first tool takes most of the time, because it
// compiles what the others share.
func byModule(selected []tool) [][]tool {
	var groups [][]tool
	for _, t := range selected {
		i := slices.IndexFunc(groups, func(group []tool) bool { return group[0].module == t.module })
		if i < 0 {
			i, groups = len(groups), append(groups, nil)
		}
		groups[i] = append(groups[i], t)
	}
	return groups
}

// buildArgs returns the build flags of a tool, and a digest of all inputs of the tool.
func buildArgs(l layout.Layout, t tool, goVersion string) (args []string, stamp string, err error) {
	module, err := readModule(l, t.module)
	if err != nil {
		return nil, "", err
	}
	sum := sha256.New()
	files, err := filepath.Glob(filepath.Join(l.ToolModule(t.module), "*"))
	if err != nil {
		return nil, "", fmt.Errorf("failed to find the module of %s: %w", t.name, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, "", fmt.Errorf("failed to read the module of %s: %w", t.name, err)
		}
		sum.Write(data)
	}
	ldflags := []string{"-s", "-w"}
	if t.ldflags != nil {
		more, err := t.ldflags(module)
		if err != nil {
			return nil, "", err
		}
		ldflags = append(ldflags, more...)
	}
	args = []string{"-ldflags", strings.Join(ldflags, " ")}
	if t.tags != "" {
		args = append(args, "-tags", t.tags)
	}
	fmt.Fprintln(sum, goVersion, runtime.GOOS, runtime.GOARCH, Flags, args)
	return args, hex.EncodeToString(sum.Sum(nil)), nil
}

// isUpToDate reports whether a program exists and was made from the current inputs.
func (t tool) isUpToDate(l layout.Layout, goVersion string) (bool, error) {
	if t.deb.pkg != "" && hasStamp(l, t.name, t.deb.stamp()) {
		return true, nil
	}
	if t.pkg == "" {
		return false, nil
	}
	_, stamp, err := buildArgs(l, t, goVersion)
	return err == nil && hasStamp(l, t.name, stamp), err
}

// hasStamp reports whether a program exists and was made from the inputs with this stamp.
func hasStamp(l layout.Layout, name, stamp string) bool {
	data, err := os.ReadFile(l.Stamp(name))
	if err != nil || string(data) != stamp {
		return false
	}
	_, err = os.Stat(l.Bin(name))
	return err == nil
}

// Build installs the named tools that are not up to date. While the compiler works, it downloads
// the modules of later tools, calls prepare, and then unpacks Debian's programs.
func Build(ctx context.Context, l layout.Layout, names []string, progress *host.Progress, prepare func(context.Context) error) error {
	selected, err := selectTools(names)
	if err != nil {
		return err
	}
	out, err := goCommand(ctx, l.Repo, "env", "GOVERSION").Output()
	if err != nil {
		return fmt.Errorf("failed to find out the version of Go: %w", host.CommandError(err))
	}
	goVersion := strings.TrimSpace(string(out))
	var fromDebian, fromSource []tool
	for _, t := range selected {
		current, err := t.isUpToDate(l, goVersion)
		switch {
		case err != nil:
			return err
		case current:
		case t.deb.pkg != "":
			fromDebian = append(fromDebian, t)
		default:
			fromSource = append(fromSource, t)
		}
	}
	var unsuitable []tool
	tasks, tasksCtx := errgroup.WithContext(ctx)
	tasks.Go(func() error { return compile(tasksCtx, l, fromSource, goVersion, progress) })
	tasks.Go(func() error {
		download(tasksCtx, l, fromSource)
		return nil
	})
	tasks.Go(func() error {
		if err := prepare(tasksCtx); err != nil {
			return err
		}
		var err error
		unsuitable, err = unpack(tasksCtx, l, fromDebian, progress)
		return err
	})
	if err := tasks.Wait(); err != nil {
		return err
	}
	return compile(ctx, l, unsuitable, goVersion, progress)
}

// compile builds tools from source.
func compile(ctx context.Context, l layout.Layout, selected []tool, goVersion string, progress *host.Progress) error {
	groups := byModule(selected)
	for i, group := range groups {
		names := make([]string, len(group))
		for i, t := range group {
			names[i] = t.name
		}
		takes := "minutes the first time"
		if time := usual[group[0].module]; time != "" {
			takes = "about " + time + " on two processors the first time"
		}
		progress.Step("building %d of %d: %s (%s)", i+1, len(groups), strings.Join(names, " "), takes)
		for _, t := range group {
			if err := t.build(ctx, l, goVersion); err != nil {
				return fmt.Errorf("failed to build %s: %w", t.name, err)
			}
		}
	}
	return nil
}

// download downloads the modules of tools in the order in which compile needs them. It ignores
// errors, because compile reports them.
func download(ctx context.Context, l layout.Layout, selected []tool) {
	groups := byModule(selected)
	for _, group := range groups[min(1, len(groups)):] { // compile begins with the first group itself
		args := []string{"list", "-deps", "-tags", group[0].tags}
		for _, t := range group {
			args = append(args, t.pkg)
		}
		_ = goCommand(ctx, l.ToolModule(group[0].module), args...).Run()
	}
}

// build uses go run, because Go caches the executables that it runs. go build would link them again
// in each clone. -f replaces a program that is running.
func (t tool) build(ctx context.Context, l layout.Layout, goVersion string) error {
	flags, stamp, err := buildArgs(l, t, goVersion)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(l.Bin(t.name)), 0o755); err != nil {
		return fmt.Errorf("failed to make the directory of programs: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, buildLimit)
	defer cancel()
	args := slices.Concat([]string{"run", "-exec=cp -f"}, flags, []string{t.pkg, l.Bin(t.name)})
	if out, err := goCommand(ctx, l.ToolModule(t.module), args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, withoutDownloads(string(out)))
	}
	if err := host.WriteFile(l.Stamp(t.name), []byte(stamp), 0o600); err != nil {
		return fmt.Errorf("failed to record the build: %w", err)
	}
	return nil
}

// withoutDownloads removes the lines about downloaded modules from the output of a go command.
func withoutDownloads(output string) string {
	var kept strings.Builder
	for line := range strings.Lines(output) {
		if !strings.HasPrefix(line, "go: downloading ") {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

// goCommand returns a go command with the repository's flags.
func goCommand(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS="+Flags)
	for name, value := range compilerLimits {
		if os.Getenv(name) == "" {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	return cmd
}

// BuildPause compiles the program of the pause image from the source of Kubernetes.
func BuildPause(ctx context.Context, l layout.Layout, progress *host.Progress) error {
	version, err := Kubernetes.Version(l)
	if err != nil || hasStamp(l, "pause", version) {
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
