package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// describePrograms parses the arguments of the command programs, and writes the SBOM.
func describePrograms(flags *flag.FlagSet, b build, args []string) error {
	b.addFlags(flags)
	release := flags.String("release", "", "the `release` of the programs")
	out := flags.String("out", "", "the `file` for the SBOM")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() == 0 || b.commit == "" || b.time.IsZero() || *release == "" || *out == "" {
		return errors.New("programs needs -commit, -time, -release, -out and programs")
	}
	var programs []program
	for _, file := range flags.Args() {
		one, err := readProgram(file)
		if err != nil {
			return err
		}
		programs = append(programs, one)
	}
	name, _, _ := strings.Cut(filepath.Base(*out), ".")
	document, err := encodeSBOM(newProgramSBOM(name, *release, programs, b))
	if err != nil {
		return err
	}
	return os.WriteFile(*out, document, 0o644)
}

// readProgram reads a Go program. Its path consists of the last two elements of the file's path:
// the platform and the name.
func readProgram(file string) (program, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return program{}, fmt.Errorf("failed to read the program: %w", err)
	}
	info, err := buildinfo.Read(bytes.NewReader(raw))
	if err != nil {
		return program{}, fmt.Errorf("failed to read the build information of %s: %w", file, err)
	}
	sum := sha256.Sum256(raw)
	path := filepath.ToSlash(filepath.Join(filepath.Base(filepath.Dir(file)), filepath.Base(file)))
	return program{path: path, sha256: hex.EncodeToString(sum[:]), info: info}, nil
}
