// Package walkthrough reads the steps of an example's README, which are those of its source document, so that the demo and the
// tests on a cluster do exactly what the README says and see what it shows.
//
// A step is a command in a console block, with the output that follows it. Output that is not shown is not compared. Where it
// is, each line has to have the same words in the same order, however they are aligned; an age or a time agrees with every
// other one. Errors count as output.
package walkthrough

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Step is one command and what it is to print.
type Step struct {
	// Command is for a shell, run in the directory of the example.
	Command string
	// Want are the lines of its output, nil where they are not shown.
	Want []string
}

// Parse returns the steps of a README. An example of a deployment (make ...) is none: it has been done before.
func Parse(readme string) []Step {
	var out []Step
	inside, making := false, false
	for line := range strings.Lines(readme) {
		line = strings.TrimRight(line, "\n")
		if marker, found := strings.CutPrefix(line, "```"); found {
			inside, making = marker == "console", false
			continue
		}
		if !inside {
			continue
		}
		command, isCommand := strings.CutPrefix(line, "$ ")
		switch {
		case isCommand && strings.HasPrefix(command, "make "):
			making = true
		case isCommand:
			making = false
			out = append(out, Step{Command: command})
		case !making && len(out) > 0:
			out[len(out)-1].Want = append(out[len(out)-1].Want, line)
		}
	}
	return out
}

// reading matches the commands that change nothing: they may be repeated until they print what is wanted.
var reading = regexp.MustCompile(`^kubectl (get|events|logs|describe) `)

// Repeatable reports whether a step changes nothing.
func (s Step) Repeatable() bool { return reading.MatchString(s.Command) }

// varying matches words that differ from run to run: ages and times.
var varying = regexp.MustCompile(`^(([0-9]+[dhms])+|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z)$`)

// Check returns an error that shows both where an output is not what the step wants.
func (s Step) Check(output string) error {
	if s.Want == nil {
		return nil
	}
	got := strings.Split(strings.TrimRight(output, "\n"), "\n")
	if !slices.EqualFunc(s.Want, got, sameLine) {
		return fmt.Errorf("%s\nwant:\n%s\ngot:\n%s", s.Command, strings.Join(s.Want, "\n"), strings.Join(got, "\n"))
	}
	return nil
}

// fromNamespace is what newer versions of kubectl add to what they have deleted.
var fromNamespace = regexp.MustCompile(` deleted from \S+ namespace$`)

func sameLine(want, got string) bool {
	words := func(line string) []string { return strings.Fields(fromNamespace.ReplaceAllString(line, " deleted")) }
	return slices.EqualFunc(words(want), words(got), func(a, b string) bool {
		return a == b || varying.MatchString(a) && varying.MatchString(b)
	})
}
