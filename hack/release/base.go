package main

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
)

// baseArgument starts the line of a Dockerfile that has the default of the build argument BASE, a
// base image by tag and digest.
const baseArgument = "ARG BASE="

// base returns the base image of the last stage of a Dockerfile for the cluster, or "" for scratch.
func (p *project) base(dockerfile string) (string, error) {
	from, argument, err := readBase(dockerfile)
	if from == "$BASE" {
		return p.argumentBase(argument), nil
	}
	return from, err
}

// baseArguments returns the option that sets BASE in a build with a Dockerfile. It returns nothing
// if the default is right, or if the Dockerfile has no such argument: earlier releases named the
// base by its tag.
func (p *project) baseArguments(dockerfile string) ([]string, error) {
	_, argument, err := readBase(dockerfile)
	if base := p.argumentBase(argument); argument != "" && base != argument {
		return []string{"--build-arg=BASE=" + base}, nil
	}
	return nil, err
}

// argumentBase returns the value of BASE for the cluster. The local cluster builds its base images
// from source, so it has them under their tags, with other digests.
func (p *project) argumentBase(pinned string) string {
	if p.cluster == "local" {
		tagged, _, _ := strings.Cut(pinned, "@")
		return tagged
	}
	return cmp.Or(p.catalogBase, pinned)
}

// readBase is baseOf for the text of a file.
func readBase(dockerfile string) (from, argument string, err error) {
	text, err := os.ReadFile(dockerfile)
	if err != nil {
		return "", "", fmt.Errorf("failed to read the Dockerfile: %w", err)
	}
	from, argument = baseOf(string(text))
	return from, argument, nil
}

// baseOf returns the base image of the last stage of a Dockerfile, or "" for scratch, and the
// default of the build argument BASE.
func baseOf(dockerfile string) (from, argument string) {
	for line := range strings.Lines(dockerfile) {
		words := slices.DeleteFunc(strings.Fields(line), func(word string) bool { return strings.HasPrefix(word, "--") })
		if len(words) > 1 && words[0] == "FROM" {
			from = words[1]
		}
		if value, found := strings.CutPrefix(line, baseArgument); found {
			argument = strings.TrimSpace(value)
		}
	}
	if from == "scratch" {
		from = ""
	}
	return from, argument
}
