package nginxconf

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Limits of the reported findings of one configuration. The findings of a long list usually have
// the same cause.
const (
	// shown is the maximum number of findings, and shownBytes their maximum size.
	shown      = 20
	shownBytes = 8<<10 - 64
	// quotedBytes is the maximum size of a quoted word of the user.
	quotedBytes = 100
	// keptFindings is the maximum number of findings that are sorted.
	keptFindings = 1000
)

// findings are problems or warnings. count includes findings that are not kept.
type findings struct {
	kept  []Problem
	count int
}

func (f *findings) add(problem Problem) {
	if f.count++; len(f.kept) < keptFindings {
		f.kept = append(f.kept, problem)
	}
}

// addf adds a finding about a directive, unless it has an unknown value. It shortens the user's words.
func (f *findings) addf(d *directive, format string, args []any) {
	switch {
	case d.unknown:
		return
	case len(f.kept) >= keptFindings:
		f.count++
		return
	}
	f.add(Problem{Key: d.key, File: d.file, Line: d.line, Message: messagef(format, args)})
}

// messagef formats a message. It shortens the user's words.
func messagef(format string, args []any) string {
	for i, arg := range args {
		if word, ok := arg.(string); ok {
			args[i] = quoted(word)
		}
	}
	return fmt.Sprintf(format, args...)
}

// first returns the first findings in the order of the text.
func (f *findings) first() []Problem {
	slices.SortStableFunc(f.kept, func(a, b Problem) int {
		return cmp.Or(strings.Compare(a.File, b.File), strings.Compare(a.Key, b.Key), a.Line-b.Line)
	})

	// A file that is included more than once has the same finding for each include.
	distinct := slices.CompactFunc(f.kept, func(a, b Problem) bool { return a == b && a.File != "" })
	count := f.count - (len(f.kept) - len(distinct))

	var reported []Problem
	size := 0
	for _, problem := range distinct[:min(len(distinct), shown)] {
		if size += len(problem.String()); size > shownBytes {
			break
		}
		reported = append(reported, problem)
	}

	if rest := count - len(reported); rest > 0 {
		reported = append(reported, Problem{Message: fmt.Sprintf("and %d more", rest)})
	}

	return reported
}

// quoted shortens a word of the user to quotedBytes and makes it valid UTF-8.
func quoted(word string) string {
	if len(word) > quotedBytes {
		return strings.ToValidUTF8(word[:quotedBytes], "") + "…"
	}
	return strings.ToValidUTF8(word, "")
}
