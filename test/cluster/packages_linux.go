package main

// This file installs the Debian packages that the cluster needs.

import (
	"context"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// installTimeout bounds apt-get, which may have to fetch 100 MB.
const installTimeout = 10 * time.Minute

// systemPackage is a Debian package and how to tell that what it brings is there, however it came.
type systemPackage struct {
	name    string
	present func() bool
}

var systemPackages = []systemPackage{
	{"runc", hasProgram("runc")},
	{"containernetworking-plugins", hasFile("/usr/lib/cni/ptp", "/opt/cni/bin/ptp")},
	{"iptables", hasProgram("iptables")},
	{"nftables", hasProgram("nft")},
	{"conntrack", hasProgram("conntrack")},
	{"buildah", hasProgram("buildah")},
	{"busybox-static", hasStaticBusybox},
	{"iproute2", hasProgram("ip")},
	{"gcc", hasProgram("gcc")},
	{"libc6-dev", hasStaticLibC},
}

func hasProgram(name string) func() bool {
	return func() bool {
		_, err := exec.LookPath(name)
		return err == nil
	}
}

func hasFile(paths ...string) func() bool {
	return func() bool {
		return slices.ContainsFunc(paths, func(path string) bool {
			_, err := os.Stat(path)
			return err == nil
		})
	}
}

// hasStaticLibC looks for the library that `gcc -static` needs.
func hasStaticLibC() bool {
	for _, pattern := range []string{"/usr/lib/*/libc.a", "/usr/lib*/libc.a"} {
		if found, err := filepath.Glob(pattern); err == nil && len(found) > 0 {
			return true
		}
	}
	return false
}

// hasStaticBusybox looks for the busybox that runs in an otherwise empty image.
func hasStaticBusybox() bool {
	file, err := elf.Open(busyboxPath)
	if err != nil {
		return false
	}
	defer func() { _ = file.Close() }()
	return !slices.ContainsFunc(file.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP })
}

// installPackages installs what is missing.
func installPackages(ctx context.Context, progress *progress) error {
	var missing []string
	for _, p := range systemPackages {
		if !p.present() {
			missing = append(missing, p.name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	if !hasProgram("apt-get")() {
		return unavailable("these Debian packages are missing and there is no apt-get: %s", strings.Join(missing, " "))
	}
	progress.step("installing %s", strings.Join(missing, " "))
	// One source of packages that cannot be reached is no reason to give up: the others may have what is needed.
	updateErr := aptGet(ctx, "", "update", "-qq")
	err := aptGet(ctx, "", append([]string{"install", "-y", "-qq", "--no-install-recommends"}, missing...)...)
	if err != nil {
		return unavailable("the Debian packages %s cannot be installed: %w (update: %v)", strings.Join(missing, " "), err, updateErr)
	}
	for _, p := range systemPackages {
		if !p.present() {
			return unavailable("the Debian package %s is installed, but what it should bring is not there", p.name)
		}
	}
	return nil
}

// aptGet runs apt-get in a folder.
func aptGet(ctx context.Context, dir string, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, installTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "apt-get", args...) // #nosec G204 -- packages of the table
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return oneLine(err, string(out))
	}
	return nil
}
