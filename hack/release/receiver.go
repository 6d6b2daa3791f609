package main

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

// The receiver of request metrics has versions of its own. A release publishes its image only if
// the registry does not have the version yet, so that an operator upgrade restarts no Pods.
const (
	receiver        = "request-metrics"
	receiverDir     = "cmd/nginx-request-metrics"
	receiverVersion = receiverDir + "/VERSION"
	receiverDigests = receiverDir + "/DIGESTS"
)

// receiverFlags are the flags of the Makefile. They are repeated here because they change the program.
const receiverFlags = "-trimpath -buildvcs=false -gcflags=all=-dwarf=false -ldflags=-s"

// versionOf returns the version of an image in the tree of a release.
func versionOf(kind, release, tree string) (string, error) {
	if kind != receiver {
		return release, nil
	}
	text, err := os.ReadFile(filepath.Join(tree, receiverVersion))
	if err != nil {
		return "", fmt.Errorf("failed to read the version of the receiver: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// buildReceiver builds the program for each platform, and compares it with DIGESTS.
func (p *project) buildReceiver(tree string) error {
	recorded, err := readDigests(tree)
	if err != nil {
		return err
	}
	for _, platform := range p.platforms {
		program := filepath.Join(tree, "dist", strings.ReplaceAll(platform, "/", "_"), images[receiver].program)
		sum, err := compileReceiver(tree, platform, program)
		if err != nil {
			return err
		}
		if err := sameProgram(platform, recorded[platform], sum); err != nil {
			return err
		}
	}
	return nil
}

// compileReceiver builds the program for a platform with the toolchain of its module, and returns
// its checksum. No setting of the environment changes the program.
func compileReceiver(tree, platform, program string) (string, error) {
	name := filepath.Join(tree, receiverDir, "go.mod")
	text, err := os.ReadFile(name)
	if err != nil {
		return "", fmt.Errorf("failed to read the Go version of the receiver: %w", err)
	}
	module, err := modfile.Parse(name, text, nil)
	if err != nil {
		return "", fmt.Errorf("failed to read the Go version of the receiver: %w", err)
	}
	if module.Toolchain == nil {
		return "", fmt.Errorf("%s has no toolchain line, which fixes the Go version of the receiver", name)
	}
	out, err := filepath.Abs(program)
	if err != nil {
		return "", fmt.Errorf("failed to find the directory of the receiver: %w", err)
	}

	command := append([]string{"env"}, strings.Fields(os.Getenv("GO_BUILD_ENV"))...)
	command = append(command, "GOTOOLCHAIN="+module.Toolchain.Name, "GOFLAGS="+receiverFlags,
		"GOEXPERIMENT=", "GOFIPS140=off", "CGO_ENABLED=0", "GOOS=linux",
		"GOARCH="+strings.TrimPrefix(platform, "linux/"), "GOAMD64=v1", "GOARM64=v8.0",
		"go", "build", "-C", filepath.Join(tree, receiverDir), "-o", out, ".")
	if err := execute(command); err != nil {
		return "", err
	}
	made, err := os.ReadFile(out)
	return fmt.Sprintf("sha256:%x", sha256.Sum256(made)), err
}

// sameProgram returns an error if a program differs from the recorded one.
func sameProgram(platform, recorded, built string) error {
	if recorded == "" || recorded == built {
		return nil
	}
	return fmt.Errorf("the receiver for %s has the digest %s, and %s has %s: its sources, its dependencies, or its Go version changed. "+
		"If a release has the version in %s, write the next version there and run `make catalog`, because a published image never changes. "+
		"Then run `go test ./hack/release -run TestDigestsOfReceiver -update`", platform, built, receiverDigests, recorded, receiverVersion)
}

// readDigests returns the recorded digests of the program by platform.
func readDigests(tree string) (map[string]string, error) {
	text, err := os.ReadFile(filepath.Join(tree, receiverDigests))
	if err != nil {
		return nil, fmt.Errorf("failed to read the digests of the receiver: %w", err)
	}
	digests, _ := parseDigests(string(text))
	return digests, nil
}

// parseDigests reads lines of the form "1.0.0 linux/amd64 sha256:HEX". All have one version.
func parseDigests(text string) (digests map[string]string, version string) {
	digests = map[string]string{}
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); len(fields) == 3 {
			version = fields[0]
			digests[fields[1]] = fields[2]
		}
	}
	return digests, version
}

func formatDigests(digests map[string]string, version string) string {
	out := ""
	for _, platform := range slices.Sorted(maps.Keys(digests)) {
		out += version + " " + platform + " " + digests[platform] + "\n"
	}
	return out
}

// publishOlderReceiver publishes the image of the receiver of an older release, unless that release
// has none, or the one of this release.
func (p *project) publishOlderReceiver(tree string) error {
	older, err := versionOf(receiver, "", tree)
	if err != nil {
		return nil //nolint:nilerr // a release before 0.9.0
	}
	if current, err := versionOf(receiver, "", "."); err != nil || current == older {
		return err
	}
	if err := p.build(receiver, older, tree); err != nil {
		return err
	}
	return p.publish(receiver, older, tree)
}

// isPublished reports whether the registry has an image of the receiver, which then never changes.
// The registry of the local cluster has no published images.
func (p *project) isPublished(kind, image string) bool {
	if kind != receiver || p.cluster == "local" {
		return false
	}
	digest := p.inRegistry("digest", []string{image})
	return exec.Command(digest[0], digest[1:]...).Run() == nil //nolint:gosec // a program of this repository
}
