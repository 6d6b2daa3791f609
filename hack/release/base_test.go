package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestBaseIsPinned checks that each base image of this project's Dockerfiles has a digest, because
// a tag can be moved.
func TestBaseIsPinned(t *testing.T) {
	pinned := regexp.MustCompile(`^quay\.io/operator-framework/opm:v\d+\.\d+\.\d+@sha256:[0-9a-f]{64}$`)
	for kind, image := range images {
		text, err := os.ReadFile(filepath.Join("../..", image.dockerfile))
		must(t, err)
		from, argument := baseOf(string(text))
		switch kind {
		case "catalog":
			if from != "$BASE" || !pinned.MatchString(argument) || strings.Count(string(text), "\nFROM ") != strings.Count(string(text), " $BASE") {
				t.Errorf("%s is based on %s, which is %q by default", image.dockerfile, from, argument)
			}
		default:
			if from != "" {
				t.Errorf("%s is based on %s", image.dockerfile, from)
			}
		}
	}
}

// TestBaseOfCluster checks that the local cluster uses the base under its tag, that an external
// cluster uses the pinned base or CATALOG_BASE, and that Dockerfiles of earlier releases are built
// as they are.
func TestBaseOfCluster(t *testing.T) {
	const pinned = "r/opm:v1@sha256:00"
	inDirectory(t, t.TempDir())
	files(t, map[string]string{
		"pinned": "ARG BASE=" + pinned + "\nARG BUILDPLATFORM\nFROM --platform=$BUILDPLATFORM $BASE AS cache\nFROM $BASE\n",
		"tagged": "FROM r/opm:v0 AS cache\nFROM r/opm:v0\n", "scratch": "FROM scratch\n",
	})
	for _, test := range []struct {
		cluster, catalogBase, dockerfile, base, option string
	}{
		{"local", "", "pinned", "r/opm:v1", "--build-arg=BASE=r/opm:v1"},
		{"external", "", "pinned", pinned, ""},
		{"external", "m/opm:v1", "pinned", "m/opm:v1", "--build-arg=BASE=m/opm:v1"},
		{"external", "m/opm:v1", "tagged", "r/opm:v0", ""},
		{"local", "", "tagged", "r/opm:v0", ""},
		{"local", "", "scratch", "", ""},
	} {
		p := &project{cluster: test.cluster, catalogBase: test.catalogBase}
		base, err := p.base(test.dockerfile)
		must(t, err)
		options, err := p.baseArguments(test.dockerfile)
		must(t, err)
		if base != test.base || strings.Join(options, " ") != test.option {
			t.Errorf("%+v: the base is %q, and the options are %q", test, base, options)
		}
	}
}

// TestArgumentsOfBuilds checks that each build of an image gets the options.
func TestArgumentsOfBuilds(t *testing.T) {
	options := []string{"--build-arg=BASE=m/opm:v1"}
	for engine, p := range map[string]*project{
		"":       {cluster: "local"},
		"podman": {cluster: "external", platforms: []string{"linux/amd64", "linux/arm64"}},
		"docker": {cluster: "external", platforms: []string{"linux/amd64", "linux/arm64"}},
	} {
		builds, want := 0, 0
		for _, command := range p.publishCommands(engine, "catalog", "1.0.0", "tree", time.Unix(0, 0), options) {
			line := strings.Join(command, " ")
			if strings.Contains(line, " build ") {
				want++
				builds += strings.Count(line, " "+options[0]+" -f tree/catalog.Dockerfile tree")
			}
		}
		if diff := cmp.Diff(want, builds); diff != "" || want == 0 {
			t.Errorf("%s: %s", engine, diff)
		}
	}
}
