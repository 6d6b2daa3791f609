package main

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
)

// document is an object of config/ that becomes a template. Its expressions are placeholders until
// the object is YAML, because a template is no YAML.
type document struct {
	node        *kyaml.RNode
	expressions []string
	// moreLabels is the argument for additional labels, or "".
	moreLabels string
	errs       []error
}

// placeholder is a scalar that stands for an expression. list matches a line that consists of a
// placeholder, as an element of a list or as a key.
var (
	placeholder = regexp.MustCompile(`chart-expression-(\d+)-`)
	whole       = regexp.MustCompile(`^( *)(?:- )?chart-expression-(\d+)-(?:: "")?$`)
)

// indent is replaced in expressions by the number of spaces before the content of the value.
const indent = "INDENT"

func (d *document) placeholder(expression string) string {
	d.expressions = append(d.expressions, expression)
	return fmt.Sprintf("chart-expression-%d-", len(d.expressions)-1)
}

// set replaces the existing value at a path by an expression.
func (d *document) set(expression string, path ...string) {
	found, err := d.node.Pipe(kyaml.Lookup(path...))
	if err == nil && found == nil {
		err = errors.New("it does not exist")
	}
	if err != nil {
		d.errs = append(d.errs, fmt.Errorf("failed to replace %s: %w", strings.Join(path, "."), err))
		return
	}
	found.SetYNode(kyaml.NewScalarRNode(d.placeholder(expression)).YNode())
}

// add appends lines to a mapping or to a list. A missing mapping is created.
func (d *document) add(lines string, path ...string) {
	found, err := d.node.Pipe(kyaml.LookupCreate(kyaml.MappingNode, path...))
	if err == nil {
		scalar := kyaml.NewScalarRNode(d.placeholder(lines)).YNode()
		if found.YNode().Kind == kyaml.SequenceNode {
			found.YNode().Content = append(found.YNode().Content, scalar)
		} else {
			empty := kyaml.NewStringRNode("").YNode()
			empty.Style = kyaml.DoubleQuotedStyle
			found.YNode().Content = append(found.YNode().Content, scalar, empty)
		}
	}
	if err != nil {
		d.errs = append(d.errs, fmt.Errorf("failed to add to %s: %w", strings.Join(path, "."), err))
	}
}

// replaceScalars replaces each scalar with a value by an expression.
func (d *document) replaceScalars(value, expression string) {
	var visit func(node *kyaml.Node)
	visit = func(node *kyaml.Node) {
		if node.Kind == kyaml.ScalarNode && node.Value == value {
			*node = *kyaml.NewScalarRNode(d.placeholder(expression)).YNode()
		}
		for _, child := range node.Content {
			visit(child)
		}
	}
	visit(d.node.YNode())
}

// text returns the template.
func (d *document) text() (string, error) {
	raw, err := d.node.String()
	if err := errors.Join(append(d.errs, err)...); err != nil {
		return "", err
	}
	// Braces of config/ are not for Helm.
	raw = strings.ReplaceAll(raw, "{{", `{{ "{{" }}`)
	var out strings.Builder
	for line := range strings.Lines(raw) {
		line = strings.TrimSuffix(line, "\n")
		if match := whole.FindStringSubmatch(line); match != nil {
			for text := range strings.Lines(d.expression(match[2])) {
				text = match[1] + strings.TrimSuffix(text, "\n")
				out.WriteString(indented(text, len(text)-len(strings.TrimLeft(text, " "))) + "\n")
			}
			continue
		}
		content := len(line) - len(strings.TrimLeft(line, " -"))
		out.WriteString(placeholder.ReplaceAllStringFunc(line, func(found string) string {
			return indented(d.expression(placeholder.FindStringSubmatch(found)[1]), content+2)
		}) + "\n")
	}
	return out.String(), nil
}

// expression returns the expression of a placeholder's number.
func (d *document) expression(number string) string {
	n, err := strconv.Atoi(number)
	if err != nil || n >= len(d.expressions) {
		return number
	}
	return d.expressions[n]
}

func indented(text string, spaces int) string {
	return strings.ReplaceAll(text, indent, strconv.Itoa(spaces))
}
