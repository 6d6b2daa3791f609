package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
)

const (
	bundleCRD    = "bundle/manifests/operator.example.com_nginxoperators.yaml"
	preflightDir = "dist/preflight"
)

// preflights are crdify in the versions of the oldest and the newest OLM v1 that docs/support.md
// names: operator-controller 1.5.1 and 1.11.0.
var preflights = [2]string{"crdify", "crdify-newest"}

// edge is an upgrade from one release to another.
type edge struct{ from, to string }

// refusedEdges are the upgrades that OLM v1's default check of CRDs refuses, with the number of
// errors of each program of preflights. docs/guide/olm-v1.md has the commands for these upgrades.
// An upgrade that is not listed must have no error.
var refusedEdges = map[edge][2]int{
	{"0.5.0", "0.5.1"}: {44, 46},
	{"0.6.0", "0.7.0"}: {30, 48},
	{"0.6.0", "0.7.1"}: {60, 78},
	{"0.7.0", "0.7.1"}: {30, 30},
}

// acceptedEdges are older upgrades without an error: the check does not refuse everything.
var acceptedEdges = []edge{{"0.5.1", "0.6.0"}}

// excusable are the checks that may fail for refusedEdges. A failure of another one breaks clients:
// a removed field, for example, or another type.
var excusable = []string{"maximum", "minimum", "pattern", "unhandled"}

// preflight compares the CRDs of releases as OLM v1 does before an upgrade: those of each upgrade
// to this release, and of the upgrades whose result is known.
func (p *project) preflight() error {
	content, err := readTemplate()
	if err != nil {
		return err
	}
	edges, err := incoming(content, p.version, p.older)
	if err != nil {
		return err
	}
	edges = slices.Concat(edges, acceptedEdges)
	for known := range refusedEdges {
		if !slices.Contains(edges, known) {
			edges = append(edges, known)
		}
	}
	slices.SortFunc(edges, func(a, b edge) int { return strings.Compare(a.from+a.to, b.from+b.to) })
	if err := os.MkdirAll(preflightDir, 0o755); err != nil {
		return err
	}
	var errs []error
	for _, e := range edges {
		var found [2]int
		from, err := p.writeCRD(e.from)
		to, toErr := p.writeCRD(e.to)
		if err := errors.Join(err, toErr); err != nil {
			return err
		}
		for i, program := range preflights {
			failures, err := compare(program, from, to)
			if err != nil {
				return err
			}
			for _, failure := range failures {
				if _, isKnown := refusedEdges[e]; !isKnown || !slices.Contains(excusable, failure.check) {
					errs = append(errs, fmt.Errorf("%s to %s: %s: %s: %s", e.from, e.to, program, failure.check, failure.text))
				}
			}
			found[i] = len(failures)
		}
		fmt.Printf("from %s to %s: %d errors in the oldest OLM v1, %d in the newest\n", e.from, e.to, found[0], found[1])
		if want := refusedEdges[e]; want != found {
			errs = append(errs, fmt.Errorf("from %s to %s: want %v errors. A new one needs another solution, and an edge without errors "+
				"no exception", e.from, e.to, want))
		}
	}
	return errors.Join(errs...)
}

// incoming returns the upgrades to a release in any channel of a catalog template.
func incoming(content catalogContent, release string, older []string) ([]edge, error) {
	var out []edge
	add := func(from string) {
		if e := (edge{strings.TrimPrefix(from, operatorName+".v"), release}); from != "" && !slices.Contains(out, e) {
			out = append(out, e)
		}
	}
	entries, err := content.entriesOf(release)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		add(entry.Replaces)
		for _, skipped := range entry.Skips {
			add(skipped)
		}
		if entry.SkipRange == "" {
			continue
		}
		isSkipped, err := semver.ParseRange(entry.SkipRange)
		if err != nil {
			return nil, fmt.Errorf("failed to read the skipRange of %s: %w", release, err)
		}
		for _, from := range older {
			version, err := semver.Parse(from)
			if err != nil {
				return nil, err
			}
			if isSkipped(version) {
				add(from)
			}
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("the catalog template has no upgrade to %s", release)
	}
	return out, nil
}

// writeCRD writes the CRD of a release's bundle to a file and returns its absolute path.
func (p *project) writeCRD(release string) (string, error) {
	if release == p.version {
		return filepath.Abs(bundleCRD)
	}
	commit, err := lastCommit(release)
	if err != nil {
		return "", err
	}
	text, err := output("", "git", "show", commit+":"+bundleCRD)
	if err != nil {
		return "", err
	}
	path, err := filepath.Abs(filepath.Join(preflightDir, "v"+release+".yaml"))
	if err != nil {
		return "", err
	}
	return path, os.WriteFile(path, []byte(text), 0o644)
}

// preflightFailure is an error of one check of crdify.
type preflightFailure struct{ check, text string }

// compare runs a program of preflights. It exits with 1 if it finds errors.
func compare(program, from, to string) ([]preflightFailure, error) {
	cmd := exec.Command(program, "--config=hack/preflight.yaml", "--output=json", "file://"+from, "file://"+to)
	cmd.Stderr = os.Stderr
	out, runErr := cmd.Output()
	var document any
	if err := json.Unmarshal(out, &document); err != nil {
		return nil, fmt.Errorf("failed to run %s: %w", program, errors.Join(runErr, err))
	}
	failures := failuresIn(document)
	if (runErr != nil) != (len(failures) > 0) {
		return nil, fmt.Errorf("%s found %d errors and ended with %w", program, len(failures), runErr)
	}
	return failures, nil
}

// failuresIn returns the errors in the JSON of crdify. The two versions nest the results of checks
// differently. In both, a result has the fields name and errors.
func failuresIn(document any) []preflightFailure {
	var out []preflightFailure
	switch value := document.(type) {
	case map[string]any:
		if name, isResult := value["name"].(string); isResult {
			texts, _ := value["errors"].([]any)
			for _, text := range texts {
				out = append(out, preflightFailure{name, fmt.Sprint(text)})
			}
		}
		for _, inner := range value {
			out = append(out, failuresIn(inner)...)
		}
	case []any:
		for _, inner := range value {
			out = append(out, failuresIn(inner)...)
		}
	}
	return out
}
