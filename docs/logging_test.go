package docs_test

import (
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/example/nginx-operator/internal/options"
)

const loggingPage = "docs/guide/logging.md"

// codeOf returns the code of the operator and of the plugin as one text.
func codeOf(t *testing.T) string {
	t.Helper()
	var code strings.Builder
	for _, root := range []string{"internal", "controllers", "pkg", "cmd", "main.go"} {
		err := fs.WalkDir(repository, root, func(name string, _ fs.DirEntry, err error) error {
			if err == nil && path.Ext(name) == ".go" && !strings.HasSuffix(name, "_test.go") {
				code.WriteString(read(t, name))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return code.String()
}

// The page on logging names messages that the operator logs. Rows say which messages come from
// another module.
func TestSearchedMessages(t *testing.T) {
	code := codeOf(t)
	rows := regexp.MustCompile("(?m)^\\| [^|]+\\? \\| (?:starts with )?`([^`]+)` \\| ([^|]*) \\|$").
		FindAllStringSubmatch(sectionOf(t, loggingPage, "Search for"), -1)
	if len(rows) < 10 {
		t.Fatalf("%d rows", len(rows))
	}
	for _, row := range rows {
		foreign := strings.HasPrefix(row[2], "from ")
		if logged := regexp.MustCompile(`(?:Info|Error)\((?:err, )?"` + regexp.QuoteMeta(row[1])).MatchString(code); logged == foreign {
			t.Errorf("the operator logs %q: %t; the page says %q", row[1], logged, row[2])
		}
	}
}

// The page on logging has the flags of the log with their variables, values, and defaults.
func TestFlagsOfTheLog(t *testing.T) {
	var help strings.Builder
	_, _ = options.Parse([]string{"--help"}, os.LookupEnv, &help)
	section := sectionOf(t, loggingPage, "Levels and format")
	flags := regexp.MustCompile(`--(log-[a-z]+) string [^\[]*\[([A-Z_]+)\] \(default "([a-z]+)"\)`).
		FindAllStringSubmatch(oneLine(help.String()), -1)
	if len(flags) != 2 || strings.Count(section, "| `--log-") != len(flags) {
		t.Fatalf("%d flags of the log in the help:\n%s", len(flags), help.String())
	}
	for _, flag := range flags {
		row := regexp.MustCompile("(?m)^\\| `--" + flag[1] + "` \\| `" + flag[2] + "` \\| (.+) \\| `" + flag[3] + "` \\|$").
			FindStringSubmatch(section)
		if row == nil {
			t.Errorf("%s has no row of --%s with %s and the default %s", loggingPage, flag[1], flag[2], flag[3])
			continue
		}
		for _, value := range strings.Split(strings.ReplaceAll(row[1], "`", ""), ", ") {
			if _, err := options.Parse([]string{"--nginx-image=nginx:1", "--" + flag[1] + "=" + value}, os.LookupEnv, io.Discard); err != nil {
				t.Errorf("the operator refuses a value of the page: %v", err)
			}
		}
	}
}

// The lines in JSON on the page on logging are objects with the keys that the page explains.
func TestLinesOfTheLog(t *testing.T) {
	lines := 0
	for _, fence := range fencePattern.FindAllStringSubmatch(read(t, loggingPage), -1) {
		if fence[2] != "json" {
			continue
		}
		lines++
		line := map[string]any{}
		if err := json.Unmarshal([]byte(fence[3]), &line); err != nil {
			t.Fatal(err)
		}
		if line["time"] == nil || line["msg"] == nil || !strings.Contains(codeOf(t), `Info("`+line["msg"].(string)+`"`) {
			t.Errorf("the operator does not log %v", line)
		}
	}
	if lines != 2 {
		t.Errorf("%d lines", lines)
	}
}
