package preview

import (
	"fmt"
	"io"
	"strings"

	"github.com/example/nginx-operator/cmd/kubectl-nginx/printer"
)

// Render writes a plan as text, without the diffs of child objects that are created or deleted.
func (p *Plan) Render(to io.Writer, paint printer.Painter) error {
	var out strings.Builder
	for _, warning := range p.Warnings {
		out.WriteString(paint.Paint(printer.Yellow, "Warning: "+printer.Line(warning)) + "\n")
	}
	for _, object := range p.Objects {
		object.render(&out, paint)
	}

	_, err := io.WriteString(to, out.String())
	return err
}

func (o *Object) render(out *strings.Builder, paint printer.Painter) {
	out.WriteString(headline(&o.Change, paint) + "\n")
	if o.Action != Create {
		out.WriteString(Colored(o.Diff, paint))
	}
	for _, blocker := range o.BlockedBy {
		out.WriteString(paint.Paint(printer.Red, "  blocked by "+printer.Line(blocker.Reason)) + ": " + printer.Line(blocker.Message) + "\n")
	}
	if o.Paused && len(o.Children) > 0 {
		out.WriteString(paint.Paint(printer.Yellow, "  spec.paused: the operator makes these changes after: kubectl nginx resume") + "\n")
	}

	for _, child := range o.Children {
		out.WriteString("  " + headline(&child, paint) + "\n")
		if child.Action == Update {
			diff := strings.TrimSuffix(Colored(child.Diff, paint), "\n")
			out.WriteString("    " + strings.ReplaceAll(diff, "\n", "\n    ") + "\n")
		}
	}

	if o.Pods != nil {
		out.WriteString("  " + o.Pods.words(paint) + "\n")
	}
	for _, note := range o.Notes {
		out.WriteString(paint.Paint(printer.Yellow, "  note: "+printer.Line(note)) + "\n")
	}
}

func headline(change *Change, paint printer.Painter) string {
	name := printer.Line(change.Kind + " " + change.Name)
	suffix := ""
	if change.Unchecked {
		suffix = " (not checked by the API server: you cannot write it)"
	}

	switch change.Action {
	case Create:
		return paint.Paint(printer.Green, "+ "+name) + " is created" + suffix
	case Delete:
		return paint.Paint(printer.Red, "- "+name) + " is deleted" + suffix
	case Update:
		return paint.Paint(printer.Yellow, "~ "+name) + " changes" + suffix
	}

	return "= " + name + " does not change"
}

func (p *Pods) words(paint printer.Painter) string {
	switch {
	case p.Roll:
		text := fmt.Sprintf("Pods: a rolling update replaces all %d", p.Before)
		if p.Strategy != "" {
			text += " (" + printer.Line(p.Strategy) + ")"
		}
		if p.Before != p.After {
			text += fmt.Sprintf(", and changes their number to %d", p.After)
		}
		return paint.Paint(printer.Yellow, text)
	case p.Before == 0 && p.After > 0:
		return fmt.Sprintf("Pods: %d are created", p.After)
	case p.Before != p.After:
		return fmt.Sprintf("Pods: %d instead of %d, running Pods are not replaced", p.After, p.Before)
	}
	return "Pods: none are replaced"
}

// Colored returns a unified diff with colors. It escapes control characters.
func Colored(diff string, paint printer.Painter) string {
	var out strings.Builder
	for line := range strings.Lines(diff) {
		line = printer.Text(strings.TrimSuffix(line, "\n"))
		switch {
		case strings.HasPrefix(line, "---"), strings.HasPrefix(line, "+++"):
			line = paint.Paint(printer.Bold, line)
		case strings.HasPrefix(line, "@@"):
			line = paint.Paint(printer.Cyan, line)
		case strings.HasPrefix(line, "-"):
			line = paint.Paint(printer.Red, line)
		case strings.HasPrefix(line, "+"):
			line = paint.Paint(printer.Green, line)
		}
		out.WriteString(line + "\n")
	}

	return out.String()
}
