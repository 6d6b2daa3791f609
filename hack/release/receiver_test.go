package main

import (
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "record the digests of the receiver")

var receiverPlatforms = []string{"linux/amd64", "linux/arm64"}

// TestDigestsOfReceiver checks that the program of the receiver is the recorded one. Otherwise the
// same version would have two images, and Pods of the same version would run different programs.
// Compiling the standard library for another platform takes a minute, so only a release and -update
// build the program for all platforms.
func TestDigestsOfReceiver(t *testing.T) {
	inDirectory(t, "../..")
	version, err := versionOf(receiver, "", ".")
	must(t, err)
	recorded, recordedVersion := map[string]string{}, version
	if !*update {
		text, err := os.ReadFile(receiverDigests)
		must(t, err)
		recorded, recordedVersion = parseDigests(string(text))
	}
	built, platforms := map[string]string{}, receiverPlatforms
	if !*update {
		platforms = []string{"linux/" + runtime.GOARCH}
	}
	for _, platform := range platforms {
		built[platform], err = compileReceiver(".", platform, filepath.Join(t.TempDir(), "program"))
		must(t, err)
		if err := sameProgram(platform, recorded[platform], built[platform]); err != nil {
			t.Error(err)
		}
	}
	if *update {
		must(t, os.WriteFile(receiverDigests, []byte(formatDigests(built, version)), 0o644))
		return
	}
	if len(recorded) != len(receiverPlatforms) || recordedVersion != version {
		t.Errorf("%s has %v of version %s: run `go test ./hack/release -run TestDigestsOfReceiver -update`",
			receiverDigests, recorded, recordedVersion)
	}
}

// TestDigestsOfReleases checks that a version of the receiver in a release is still the same
// program.
func TestDigestsOfReleases(t *testing.T) {
	inDirectory(t, "../..")
	p, err := load()
	must(t, err)
	text, err := os.ReadFile(receiverDigests)
	must(t, err)
	for _, release := range p.older {
		commit, err := lastCommit(release)
		must(t, err)
		listed, err := output("", "git", "ls-tree", "--name-only", commit, receiverDigests)
		must(t, err)
		if listed == "" {
			continue
		}
		released, err := output("", "git", "show", commit+":"+receiverDigests)
		must(t, err)
		if diff := changedVersion(released, string(text)); diff != "" {
			t.Errorf("release %s has the same version of the receiver with other programs: write the next version into %s:\n%s",
				release, receiverVersion, diff)
		}
	}
}

// changedVersion returns the difference of two files of digests if they have the same version.
func changedVersion(released, current string) string {
	before, version := parseDigests(released)
	now, currentVersion := parseDigests(current)
	if version != currentVersion {
		return ""
	}
	return cmp.Diff(before, now)
}

func TestChangedVersion(t *testing.T) {
	const released = "1.0.0 linux/amd64 sha256:a\n1.0.0 linux/arm64 sha256:b\n"
	for current, want := range map[string]bool{
		released: false,
		strings.ReplaceAll(released, "sha256:b", "sha256:c"):                                            true,
		strings.NewReplacer("1.0.0", "1.0.1", "sha256:b", "sha256:c").Replace(released):                 false,
		strings.ReplaceAll(released, "1.0.0 linux/arm64 sha256:b\n", ""):                                true,
		formatDigests(map[string]string{"linux/arm64": "sha256:b", "linux/amd64": "sha256:a"}, "1.0.0"): false,
	} {
		if diff := changedVersion(released, current); (diff != "") != want {
			t.Errorf("%s: %s", current, diff)
		}
	}
}

// TestSameProgram checks that a changed program is an error that says what to do.
func TestSameProgram(t *testing.T) {
	if err := sameProgram("linux/amd64", "sha256:a", "sha256:a"); err != nil {
		t.Error(err)
	}
	err := sameProgram("linux/amd64", "sha256:a", "sha256:b")
	if err == nil || !strings.Contains(err.Error(), "write the next version there and run `make catalog`") {
		t.Error(err)
	}
}

// TestVersionOfReceiver checks that the files with the tag of the receiver have its version, which
// differs from the operator's: tests of upgrades replace the operator's version in all files.
func TestVersionOfReceiver(t *testing.T) {
	inDirectory(t, "../..")
	p, err := load()
	must(t, err)
	version, err := versionOf(receiver, "", ".")
	must(t, err)
	if version == p.version {
		t.Errorf("the receiver has the operator's version %s", version)
	}
	image := p.image(receiver, version)
	for _, file := range []string{
		"internal/wellknown/wellknown.go", "config/manager/manager.yaml", "docs/guide/operations/settings.md", "docs/facts.md",
		"docs/guide/air-gapped.md",
		"bundle/" + csvFile, chartDir + "/values.yaml",
	} {
		text, err := os.ReadFile(file)
		must(t, err)
		name, _, _ := strings.Cut(image, ":")
		if has := strings.Count(string(text), image); has == 0 || has != strings.Count(string(text), name+":") {
			t.Errorf("%s does not have the image %s: run `make catalog`", file, image)
		}
	}
}

// TestPublishedReceiver checks that a version in the registry is not built and pushed again.
func TestPublishedReceiver(t *testing.T) {
	calls := repository(t)
	files(t, map[string]string{
		receiverVersion: "1.0.0\n", receiverDir + "/Dockerfile": "FROM scratch\n",
		"bin/oci": "#!/bin/sh\nexit $MISSING\n",
	})
	commit(t)
	for name, value := range map[string]string{"CLUSTER": "external", "IMAGE_REGISTRY": "r/me", "CONTAINER_TOOL": "podman"} {
		t.Setenv(name, value)
	}
	files(t, map[string]string{"tools/podman": "#!/bin/sh\necho podman $* >> calls\n"})
	p, err := load()
	must(t, err)
	for missing, want := range map[string]int{"1": 1, "0": 0} {
		t.Setenv("MISSING", missing)
		must(t, p.publish(receiver, "1.0.0", "."))
		made := calls()
		if pushed := strings.Count(made, "podman manifest push --all r/me/nginx-request-metrics:v1.0.0"); pushed != want {
			t.Errorf("missing %s: pushed %d times: %s", missing, pushed, made)
		}
	}
}
