package main

// This file reads what apt says.

import (
	"errors"
	"fmt"
	"strings"
)

// parseDependencies picks the libraries and nginx's own files from the answer of `apt-cache depends nginx`.
func parseDependencies(answer string) ([]string, error) {
	names := []string{"nginx"}
	for line := range strings.Lines(answer) {
		name, ok := strings.CutPrefix(strings.TrimSpace(line), "Depends: ")
		if ok && (strings.HasPrefix(name, "lib") || name == "zlib1g" || name == "nginx-common") {
			names = append(names, name)
		}
	}
	if len(names) < 3 {
		return nil, errors.New("failed to find the libraries that nginx needs")
	}
	return names, nil
}

// oneLine puts the end of what a command wrote into its error.
func oneLine(err error, output string) error {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	return fmt.Errorf("%w: %s", err, strings.TrimSpace(lines[len(lines)-1]))
}
