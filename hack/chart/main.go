// Command chart generates the Helm chart in charts/nginx-operator. Its source is config/: the
// command renders config/default with its components and replaces the fields that values control by
// template expressions. The files below hack/chart/static are the rest of the chart. The command
// also updates the values and the version in docs/guide/helm.md. `make chart` runs it in the root
// of the repository.
package main

import (
	"bytes"
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
)

const (
	chartDir = "charts/nginx-operator"
	page     = "docs/guide/helm.md"
)

// static contains the files of the chart that are not objects of config/. They are Go templates
// with the delimiters [[ and ]], because Helm's own expressions have braces.
//
//go:embed all:static
var static embed.FS

func main() {
	if err := run("."); err != nil {
		fmt.Fprintln(os.Stderr, "chart:", err)
		os.Exit(1)
	}
}

// run generates the chart of the repository in a directory.
func run(repository string) error {
	files, err := generate(repository)
	if err != nil {
		return err
	}
	version, err := os.ReadFile(filepath.Join(repository, "VERSION")) //nolint:gosec // of this repository
	if err != nil {
		return fmt.Errorf("failed to read the version: %w", err)
	}
	text, err := os.ReadFile(filepath.Join(repository, page)) //nolint:gosec // of this repository
	if err != nil {
		return fmt.Errorf("failed to read the page: %w", err)
	}
	described, err := updatePage(string(text), files["values.yaml"], strings.TrimSpace(string(version)))
	if err != nil {
		return err
	}

	// A removed file must not stay in the chart.
	chart := filepath.Join(repository, chartDir)
	if err := os.RemoveAll(chart); err != nil {
		return fmt.Errorf("failed to remove the old chart: %w", err)
	}
	errs := []error{os.WriteFile(filepath.Join(repository, page), []byte(described), 0o600)} //nolint:gosec // the caller names the repository
	for _, name := range slices.Sorted(maps.Keys(files)) {
		file := filepath.Join(chart, name)
		errs = append(errs, os.MkdirAll(filepath.Dir(file), 0o750), os.WriteFile(file, []byte(files[name]), 0o600))
	}
	return errors.Join(errs...)
}

// generate returns the files of the chart by their names.
func generate(repository string) (map[string]string, error) {
	objects, err := render(repository)
	if err != nil {
		return nil, err
	}
	defaults, err := readDefaults(repository, objects)
	if err != nil {
		return nil, err
	}
	files, err := staticFiles(defaults)
	if err != nil {
		return nil, err
	}
	for _, object := range objects {
		text, err := convert(object)
		if err != nil {
			return nil, fmt.Errorf("failed to convert %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		if text == "" {
			continue
		}
		name := "templates/" + fileOf(object) + ".yaml"
		files[name] = cmp.Or(files[name], "{{- /* Generated from config/ by `make chart`. */ -}}\n") + text
	}
	return files, nil
}

// staticFiles returns the static files of the chart, with the defaults filled in.
func staticFiles(values defaults) (map[string]string, error) {
	files := map[string]string{}
	expand := func(name string) error {
		text, err := static.ReadFile("static/" + name)
		if err != nil {
			return fmt.Errorf("failed to read a static file: %w", err)
		}
		parsed, err := template.New(name).Delims("[[", "]]").Option("missingkey=error").Parse(string(text))
		if err != nil {
			return fmt.Errorf("failed to parse a static file: %w", err)
		}
		var out bytes.Buffer
		if err := parsed.Execute(&out, values); err != nil {
			return fmt.Errorf("failed to fill in a static file: %w", err)
		}
		files[name] = out.String()
		return nil
	}
	// The README contains the table of values.
	if err := expand("values.yaml"); err != nil {
		return nil, err
	}
	table, err := valuesTable(files["values.yaml"])
	if err != nil {
		return nil, err
	}
	values.Table = table
	return files, fs.WalkDir(static, "static", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		return expand(strings.TrimPrefix(path, "static/"))
	})
}
