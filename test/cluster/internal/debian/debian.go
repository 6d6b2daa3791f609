// Package debian installs the Debian packages that the cluster requires, and downloads packages of
// other suites: nginx for the operand image, and programs of the cluster.
package debian

import (
	"context"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/example/nginx-operator/test/cluster/internal/host"
)

// Busybox is the program of the package busybox-static.
const Busybox = "/bin/busybox"

// installTimeout bounds one run of apt-get, which can download 100 MB.
const installTimeout = 10 * time.Minute

// systemPackage is a Debian package. present reports whether its files exist, however they were
// installed.
type systemPackage struct {
	name    string
	present func() bool
}

// keyring signs all releases of Debian. Derivatives of Debian do not always have it.
var keyring = systemPackage{"debian-archive-keyring", hasFile(keyringFile)}

const keyringFile = "/usr/share/keyrings/debian-archive-keyring.gpg"

var systemPackages = []systemPackage{
	keyring,
	{"runc", hasProgram("runc")},
	{"containernetworking-plugins", hasFile("/usr/lib/cni/ptp", "/opt/cni/bin/ptp")},
	{"iptables", hasProgram("iptables")},
	{"nftables", hasProgram("nft")},
	{"conntrack", hasProgram("conntrack")},
	{"buildah", hasProgram("buildah")},
	{"busybox-static", hasStaticBusybox},
	{"iproute2", hasProgram("ip")},
	{"gcc", hasProgram("gcc")},
	{"libc6-dev", hasFile("/usr/lib/*/libc.a", "/usr/lib*/libc.a")}, // for gcc -static
}

func hasProgram(name string) func() bool {
	return func() bool {
		_, err := exec.LookPath(name)
		return err == nil
	}
}

func hasFile(patterns ...string) func() bool {
	return func() bool {
		return slices.ContainsFunc(patterns, func(pattern string) bool {
			found, err := filepath.Glob(pattern)
			return err == nil && len(found) > 0
		})
	}
}

// hasStaticBusybox reports whether busybox is static, so that it runs in an otherwise empty image.
func hasStaticBusybox() bool {
	file, err := elf.Open(Busybox)
	if err != nil {
		return false
	}
	defer func() { _ = file.Close() }()
	return !slices.ContainsFunc(file.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP })
}

// missing returns the names of the packages that are not installed.
func missing(packages []systemPackage) (names []string) {
	for _, p := range packages {
		if !p.present() {
			names = append(names, p.name)
		}
	}
	return names
}

// Install installs the missing packages of the cluster.
func Install(ctx context.Context, progress *host.Progress) error {
	return install(ctx, progress, systemPackages)
}

func install(ctx context.Context, progress *host.Progress, packages []systemPackage) error {
	names := missing(packages)
	if len(names) == 0 {
		return nil
	}
	if !hasProgram("apt-get")() {
		return host.Unavailable("these Debian packages are missing and there is no apt-get: %s", strings.Join(names, " "))
	}
	progress.Step("installing %s", strings.Join(names, " "))
	// Continue after a failed update: the remaining package sources may be sufficient.
	updateErr := aptGet(ctx, "", "update", "-qq")
	err := aptGet(ctx, "", append([]string{"install", "-y", "-qq", "--no-install-recommends"}, names...)...)
	if err != nil {
		return host.Unavailable("the Debian packages %s cannot be installed: %w (update: %v)", strings.Join(names, " "), err, updateErr)
	}
	if rest := missing(packages); len(rest) > 0 {
		return host.Unavailable("the Debian package %s is installed, but what it should install is not there", rest[0])
	}
	return nil
}

// aptGet runs apt-get in a directory.
func aptGet(ctx context.Context, dir string, args ...string) error {
	_, err := apt(ctx, dir, "apt-get", args...)
	return err
}

// apt runs a program of apt in a directory and returns its output.
func apt(ctx context.Context, dir, program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, installTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C")
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("failed to run %s: %w", program, host.CommandError(err))
	}
	return string(out), nil
}
