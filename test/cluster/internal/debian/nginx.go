package debian

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/example/nginx-operator/test/cluster/internal/host"
)

// DefaultSuite is the Debian release of the default image's nginx and its libraries. It does not
// depend on the machine's release.
const DefaultSuite = "trixie"

// Suites are the Debian releases whose nginx the operand is tested with, oldest first: bookworm
// (Debian 12) has nginx 1.22, trixie (Debian 13) has 1.26, and sid has the latest package.
var Suites = []string{"bookworm", DefaultSuite, rollingSuite}

// rollingSuite changes continuously, so its packages are downloaded again every week.
const rollingSuite = "sid"

// debianKeyring signs all releases of Debian.
const debianKeyring = "/usr/share/keyrings/debian-archive-keyring.gpg"

// Nginx returns the package files of a suite's nginx. It downloads them to the user's cache
// directory if they are not there. Without a home directory, it downloads them to fallback, and
// each cluster downloads them again.
func Nginx(ctx context.Context, suite, fallback string, progress *host.Progress) ([]string, error) {
	if !slices.Contains(Suites, suite) {
		return nil, fmt.Errorf("unknown suite %q: one of %s", suite, strings.Join(Suites, ", "))
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = fallback
	}
	dir := filepath.Join(cache, "nginx-operator", cacheName(suite, time.Now()))
	files, err := packagesIn(dir)
	if err == nil && len(files) == 0 {
		progress.Step("fetching the packages of nginx from Debian's %s", suite)
		files, err = fetchInto(ctx, dir, suite)
	}
	if err == nil {
		progress.Step("nginx %s of Debian's %s", nginxVersion(files), suite)
	}
	return files, err
}

// cacheName returns the directory name for a suite's packages.
func cacheName(suite string, now time.Time) string {
	if suite == rollingSuite {
		year, week := now.ISOWeek()
		suite = fmt.Sprintf("%s-%d-W%02d", suite, year, week)
	}
	return "nginx-packages-" + suite
}

// packagesIn returns the packages in a directory. They are sorted, so that the layer is
// reproducible.
func packagesIn(dir string) ([]string, error) { return filepath.Glob(filepath.Join(dir, "*.deb")) }

// nginxVersion returns the version of the package nginx in a list of files, or "" if the list does
// not contain it.
func nginxVersion(files []string) string {
	for _, file := range files {
		if rest, ok := strings.CutPrefix(filepath.Base(file), "nginx_"); ok {
			version, _, _ := strings.Cut(rest, "_")
			return version
		}
	}
	return ""
}

// fetchInto downloads the packages of a suite into dir.
func fetchInto(ctx context.Context, dir, suite string) ([]string, error) {
	// Download to another directory first, so that an interrupted download does not look complete.
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return nil, fmt.Errorf("failed to make the cache directory: %w", err)
	}
	aside, err := os.MkdirTemp(filepath.Dir(dir), "download-")
	if err != nil {
		return nil, fmt.Errorf("failed to make a directory for the packages: %w", err)
	}
	defer func() { _ = os.RemoveAll(aside) }()
	if err := fetchNginx(ctx, aside, suite); err != nil {
		return nil, host.Unavailable("the packages of nginx cannot be fetched: %w", err)
	}
	if err := os.Rename(filepath.Join(aside, "packages"), dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("failed to keep the packages: %w", err)
	}
	return packagesIn(dir)
}

// fetchNginx downloads the packages of a suite into dir/packages. apt writes its state to dir, so
// the machine's package lists and sources do not change.
func fetchNginx(ctx context.Context, dir, suite string) error {
	targets, err := aptOutput(ctx, "apt-get", "indextargets", "--format", "$(SITE) $(LABEL)", "Created-By: Packages")
	if err != nil {
		return err
	}
	source := fmt.Sprintf("deb [signed-by=%s] %s %s main\n", debianKeyring, parseMirror(targets), suite)
	if err := host.WriteFile(filepath.Join(dir, "sources.list"), []byte(source), 0o644); err != nil {
		return err
	}
	packages := filepath.Join(dir, "packages")
	// apt-get drops its privileges for downloads and must still be able to write here.
	lists, archives := filepath.Join(dir, "state", "lists", "partial"), filepath.Join(dir, "cache", "archives", "partial")
	for _, d := range []string{dir, packages, lists, archives} {
		if err := errors.Join(os.MkdirAll(d, 0o755), os.Chmod(d, 0o777)); err != nil {
			return fmt.Errorf("failed to make a directory for the packages: %w", err)
		}
	}
	own := aptOptions(dir)
	if err := aptGet(ctx, dir, append(own, "update", "-qq")...); err != nil {
		return err
	}
	names := []string{"nginx"}
	for known := 0; known < len(names); {
		known = len(names)
		out, err := aptOutput(ctx, "apt-cache", slices.Concat(own, []string{
			"depends", "--no-recommends", "--no-suggests", "--no-conflicts", "--no-breaks", "--no-replaces", "--no-enhances",
		}, names)...)
		if err != nil {
			return err
		}
		names = withDependencies(names, out)
	}
	if len(names) < 3 {
		return errors.New("failed to find the libraries that nginx needs")
	}
	return aptGet(ctx, packages, slices.Concat(own, []string{"download", "-qq"}, names)...)
}

// aptOutput returns the output of an apt query.
func aptOutput(ctx context.Context, program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, host.CommandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("failed to ask %s: %w", program, host.CommandError(err))
	}
	return string(out), nil
}

// defaultMirror is used if the machine's apt has no Debian mirror.
const defaultMirror = "http://deb.debian.org/debian"

// parseMirror returns the Debian mirror from the output of `apt-get indextargets`, in which each
// line has a site and a label.
func parseMirror(targets string) string {
	for line := range strings.Lines(targets) {
		if site, label, _ := strings.Cut(strings.TrimSpace(line), " "); label == "Debian" {
			return site
		}
	}
	return defaultMirror
}

// aptOptions returns options for apt to use the sources.list in a directory and to write all state
// there.
func aptOptions(dir string) []string {
	var out []string
	for _, option := range []string{
		"Dir::Etc::sourcelist=" + dir + "/sources.list", "Dir::Etc::sourceparts=-", "Dir::State=" + dir + "/state",
		"Dir::State::status=/dev/null", "Dir::Cache=" + dir + "/cache",
	} {
		out = append(out, "-o", option)
	}
	return out
}

// withDependencies adds libraries and nginx's own files to a list of package names, from the output
// of `apt-cache depends`. The other dependencies are programs that only the installation runs.
func withDependencies(names []string, output string) []string {
	for line := range strings.Lines(output) {
		name, ok := strings.CutPrefix(strings.TrimSpace(line), "Depends: ")
		if ok && (strings.HasPrefix(name, "lib") || name == "zlib1g" || name == "nginx-common") && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
