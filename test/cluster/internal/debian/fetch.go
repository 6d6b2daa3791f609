package debian

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/example/nginx-operator/test/cluster/internal/host"
)

const (
	// Stable is the Debian release of the cluster's nginx and of most of its programs. It does not
	// depend on the machine's release.
	Stable = "trixie"
	// Rolling changes continuously, so its packages are downloaded again every week.
	Rolling = "sid"
)

// Packages are packages of one suite that are downloaded together.
type Packages struct {
	Suite string
	Names []string
	// Libraries adds the libraries of the packages, for an image that has nothing else.
	Libraries bool
}

// Fetch returns the package files, sorted by name. It downloads them to the user's cache directory
// if they are not there. Without a home directory, it downloads them to fallback, and each cluster
// downloads them again.
func Fetch(ctx context.Context, p Packages, fallback string, progress *host.Progress) ([]string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = fallback
	}
	dir := filepath.Join(cache, "nginx-operator", p.cacheName(time.Now()))
	files, err := packagesIn(dir)
	if err == nil && len(files) == 0 {
		progress.Step("fetching %s from Debian's %s", strings.Join(p.Names, " "), p.Suite)
		files, err = fetchInto(ctx, dir, p, progress)
	}
	if err == nil {
		progress.Step("%s of Debian's %s", strings.Join(versions(files, p.Names), ", "), p.Suite)
	}
	return files, err
}

// cacheName returns the directory name for the packages.
func (p Packages) cacheName(now time.Time) string {
	name := strings.Join(p.Names, "+") + "-packages-" + p.Suite
	if p.Suite == Rolling {
		year, week := now.ISOWeek()
		name += fmt.Sprintf("-%d-W%02d", year, week)
	}
	return name
}

// packagesIn returns the packages in a directory. They are sorted, so that the layer is
// reproducible.
func packagesIn(dir string) ([]string, error) { return filepath.Glob(filepath.Join(dir, "*.deb")) }

// File returns the file of a package in a list of files, and its version. Both are empty if the
// list does not contain it.
func File(files []string, name string) (file, version string) {
	for _, file := range files {
		if rest, ok := strings.CutPrefix(filepath.Base(file), name+"_"); ok {
			version, _, _ := strings.Cut(rest, "_")
			return file, version
		}
	}
	return "", ""
}

// versions returns the names of packages with their versions.
func versions(files, names []string) []string {
	out := make([]string, 0, len(names))
	for _, name := range names {
		_, version := File(files, name)
		out = append(out, name+" "+version)
	}
	return out
}

// fetchInto downloads the packages into dir.
func fetchInto(ctx context.Context, dir string, p Packages, progress *host.Progress) ([]string, error) {
	if err := install(ctx, progress, []systemPackage{keyring}); err != nil {
		return nil, err
	}
	// Download to another directory first, so that an interrupted download does not look complete.
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return nil, fmt.Errorf("failed to make the cache directory: %w", err)
	}
	aside, err := os.MkdirTemp(filepath.Dir(dir), "download-")
	if err != nil {
		return nil, fmt.Errorf("failed to make a directory for the packages: %w", err)
	}
	defer func() { _ = os.RemoveAll(aside) }()
	if err := download(ctx, aside, p); err != nil {
		return nil, fmt.Errorf("failed to fetch %s from Debian's %s: %w", strings.Join(p.Names, " "), p.Suite, err)
	}
	if err := os.Rename(filepath.Join(aside, "packages"), dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("failed to keep the packages: %w", err)
	}
	return packagesIn(dir)
}

// download downloads the packages into dir/packages. apt writes its state to dir, so the machine's
// package lists and sources do not change.
func download(ctx context.Context, dir string, p Packages) error {
	targets, err := apt(ctx, "", "apt-get", "indextargets", "--format", "$(SITE) $(LABEL)", "Created-By: Packages")
	if err != nil {
		return err
	}
	source := fmt.Sprintf("deb [signed-by=%s] %s %s main\n", keyringFile, parseMirror(targets), p.Suite)
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
	names := p.Names
	if p.Libraries {
		var err error
		if names, err = closure(ctx, own, names); err != nil {
			return err
		}
	}
	return aptGet(ctx, packages, slices.Concat(own, []string{"download", "-qq"}, names)...)
}

// closure adds the libraries of packages to their names.
func closure(ctx context.Context, own, names []string) ([]string, error) {
	for known := 0; known < len(names); {
		known = len(names)
		out, err := apt(ctx, "", "apt-cache", slices.Concat(own, []string{
			"depends", "--no-recommends", "--no-suggests", "--no-conflicts", "--no-breaks", "--no-replaces", "--no-enhances",
		}, names)...)
		if err != nil {
			return nil, err
		}
		names = withDependencies(names, out)
	}
	if len(names) < 3 {
		return nil, fmt.Errorf("failed to find the libraries of %s", strings.Join(names, " "))
	}
	return names, nil
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
		"Dir::State::status=/dev/null", "Dir::Cache=" + dir + "/cache", "Acquire::Languages=none",
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
