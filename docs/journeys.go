package docs

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Journey is a page of docs/journeys: the commands that lead a user from a problem to its solution.
type Journey struct {
	// Title is the heading of the page.
	Title string
	// Commands and Tested are the numbers of commands that the page states: all commands, and the
	// commands that tests run.
	Commands, Tested int
	// Steps are the steps of the page in their order.
	Steps []Step
}

// Step is one sh fence of a page, or one command of a console fence.
type Step struct {
	// Section is the heading above the fence.
	Section string
	// Script is the text of the fence, and Commands are its commands, with their continuation lines
	// and heredocs.
	Script   string
	Commands []string
	// Files are the manifests and patches that the reader saves before this step, by name.
	Files map[string]string
	// Answer is the text fence after the step, or the output of the command in its console fence.
	// It is empty if the page shows no output.
	Answer string
	// NotRun is the reason why no test runs the step, or empty if a test runs it.
	NotRun string
}

var (
	journeyBlock = regexp.MustCompile("(?ms)^#+ (?P<heading>[^\n]+)$|" +
		"^(?:<!-- not run: (?P<reason>[^\n]+) -->\n)?```(?P<kind>[a-z]+)\n(?P<text>.*?)^```$")
	titlePattern = regexp.MustCompile(`(?m)\A# (.+)$`)
	countPattern = regexp.MustCompile(`(?m)^Commands: (\d+), (all|\d+) tested\.$`)
	savedAs      = regexp.MustCompile("[Ss]ave this as `([\\w.-]+)`(?:[^\n]|\n[^\n])*:\n\n\\z")
	heredoc      = regexp.MustCompile(`<<'?(\w+)'?`)
	notRunItem   = regexp.MustCompile("(?m)^\\* `([^`]+)`: (.+)$")
	// varying matches a word of an answer that differs from run to run: an age or a time.
	varying = regexp.MustCompile(`^(?:` + anyTime + `)$`)
)

const anyTime = `(?:\d+[dhms])+|\d{4}-\d{2}-\d{2}T[\d:]{8}Z`

// notRunHeading is the heading of the section that lists the commands that no test runs.
const notRunHeading = "Untested commands"

// ParseJourney reads a page of docs/journeys. It returns an error unless the page states the right
// numbers of commands and lists every step that no test runs, with the reason in its marker.
func ParseJourney(page string) (*Journey, error) {
	title, counts := titlePattern.FindStringSubmatch(page), countPattern.FindStringSubmatch(page)
	if title == nil || counts == nil {
		return nil, errors.New(`the page needs a title, and a line "Commands: N, all tested."`)
	}
	steps, err := Steps(page)
	if err != nil {
		return nil, err
	}
	out := &Journey{Title: title[1], Steps: steps}
	for i := range out.Steps {
		out.Commands += len(out.Steps[i].Commands)
		if out.Steps[i].NotRun == "" {
			out.Tested += len(out.Steps[i].Commands)
		}
	}
	tested := "all"
	if out.Tested != out.Commands {
		tested = strconv.Itoa(out.Tested)
	}
	if counts[1] != strconv.Itoa(out.Commands) || counts[2] != tested {
		return nil, fmt.Errorf("the page states %q, but it has %d commands, and %d are tested", counts[0], out.Commands, out.Tested)
	}
	return out, out.checkNotRun(page)
}

// Steps returns the steps of any page.
func Steps(page string) (out []Step, err error) {
	section, files := "", map[string]string{}
	for _, at := range journeyBlock.FindAllStringSubmatchIndex(page, -1) {
		group := func(name string) string {
			i := 2 * journeyBlock.SubexpIndex(name)
			if at[i] < 0 {
				return ""
			}
			return page[at[i]:at[i+1]]
		}
		kind, text := group("kind"), group("text")
		switch {
		case group("heading") != "":
			section = group("heading")
		case kind == "yaml" || kind == "diff":
			// Other manifests are not for a command.
			if name := savedAs.FindStringSubmatch(page[:at[0]]); name != nil {
				files[name[1]] = text
			}
		case kind == "sh":
			commands, err := splitCommands(text)
			if err != nil {
				return nil, fmt.Errorf("section %q: %w", section, err)
			}
			out = append(out, Step{Section: section, Script: text, Commands: commands, Files: files, NotRun: group("reason")})
			files = map[string]string{}
		case kind == "console":
			for _, one := range strings.Split("\n"+text, "\n$ ")[1:] {
				command, answer, _ := strings.Cut(one, "\n")
				out = append(out, Step{Section: section, Script: command, Commands: []string{command}, Answer: answer})
			}
		case kind == "text":
			if len(out) == 0 || out[len(out)-1].Answer != "" {
				return nil, fmt.Errorf("section %q: the output %q does not follow a command", section, text)
			}
			out[len(out)-1].Answer = text
		}
	}
	return out, nil
}

// splitCommands returns the commands of a script. A command starts at an unindented line that is
// no comment, and has its continuation lines and heredocs.
func splitCommands(script string) ([]string, error) {
	var out []string
	end, continued := "", false
	for line := range strings.Lines(script) {
		text := strings.TrimRight(line, "\n")
		switch {
		case end != "":
			if text == end {
				end = ""
			}
		case continued || strings.HasPrefix(text, " "):
			if len(out) == 0 {
				return nil, fmt.Errorf("the first line %q is indented", text)
			}
		case text == "" || strings.HasPrefix(text, "#"):
			continue
		default:
			out = append(out, "")
		}
		out[len(out)-1] += line
		if begins := heredoc.FindStringSubmatch(text); begins != nil && end == "" && text != begins[1] {
			end = begins[1]
		}
		continued = strings.HasSuffix(text, `\`)
	}
	if end != "" {
		return nil, fmt.Errorf("a heredoc does not end with %s", end)
	}
	return out, nil
}

// checkNotRun returns an error unless the section at the end of the page lists exactly the steps
// that no test runs, each by the beginning of its first command and with its reason.
func (j *Journey) checkNotRun(page string) error {
	_, list, _ := strings.Cut(page, "\n## "+notRunHeading+"\n")
	items := notRunItem.FindAllStringSubmatch(list, -1)
	var errs []error
	for i := range j.Steps {
		step := &j.Steps[i]
		if step.NotRun == "" {
			continue
		}
		if len(items) == 0 {
			errs = append(errs, fmt.Errorf("section %q does not list %q: %s", notRunHeading, step.Commands[0], step.NotRun))
			continue
		}
		if !strings.HasPrefix(step.Commands[0], items[0][1]) || items[0][2] != step.NotRun {
			errs = append(errs, fmt.Errorf("section %q has %q, want the beginning of %q, and the reason %q",
				notRunHeading, items[0][0], step.Commands[0], step.NotRun))
		}
		items = items[1:]
	}
	if len(items) > 0 {
		errs = append(errs, fmt.Errorf("section %q lists %q, which no marker excludes", notRunHeading, items[0][0]))
	}
	return errors.Join(errs...)
}

// Check returns an error unless the lines of the answer are in the output, in their order. Runs of
// blanks are equal, ages and times match other ones, and "..." matches any text within a line.
func (s *Step) Check(output string) error {
	var pattern strings.Builder
	for line := range strings.Lines(s.Answer) {
		words := strings.Fields(line)
		for i, word := range words {
			words[i] = strings.ReplaceAll(regexp.QuoteMeta(word), `\.\.\.`, `.*`)
			if varying.MatchString(word) {
				words[i] = "(?:" + anyTime + ")"
			}
		}
		if len(words) > 0 {
			pattern.WriteString(`(?s:.*)^ *` + strings.Join(words, " +") + ` *$`)
		}
	}
	matches, err := regexp.Compile("(?m)" + pattern.String())
	if err != nil {
		return fmt.Errorf("failed to read the answer %q: %w", s.Answer, err)
	}
	if !matches.MatchString(strings.ReplaceAll(output, "\t", " ")) {
		return fmt.Errorf("the answer is not\n%s\nbut\n%s", s.Answer, output)
	}
	return nil
}
