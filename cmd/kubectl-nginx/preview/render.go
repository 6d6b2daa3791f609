package preview

import (
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/example/nginx-operator/cmd/kubectl-nginx/tree"
)

// group returns the group and kind of what changes.
func (c *Change) group() schema.GroupKind {
	return schema.FromAPIVersionAndKind(c.APIVersion, c.Kind).GroupKind()
}

// Render writes a plan as people read it. The diffs of children that are created or deleted are left out: the object says as much.
func (p *Plan) Render(to io.Writer, paint tree.Painter) error {
	var out strings.Builder
	for _, warning := range p.Warnings {
		out.WriteString(paint.Paint(tree.Yellow, "Warning: "+tree.Safe(warning)) + "\n")
	}
	for _, object := range p.Objects {
		object.render(&out, paint)
	}
	_, err := io.WriteString(to, out.String())
	return err
}

func (o *Object) render(out *strings.Builder, paint tree.Painter) {
	out.WriteString(headline(&o.Change, paint) + "\n")
	if o.Action != Create {
		out.WriteString(Colored(o.Diff, paint))
	}
	for _, blocker := range o.BlockedBy {
		out.WriteString(paint.Paint(tree.Red, "  blocked by "+blocker.Reason) + ": " + tree.Safe(blocker.Message) + "\n")
	}
	if o.Paused && len(o.Children) > 0 {
		out.WriteString(paint.Paint(tree.Yellow, "  spec.paused: the operator does what follows once it is resumed") + "\n")
	}
	for _, child := range o.Children {
		out.WriteString("  " + headline(&child, paint) + "\n")
		if child.Action == Update {
			out.WriteString(indent(Colored(child.Diff, paint)))
		}
	}
	if o.Pods != nil {
		out.WriteString("  " + o.Pods.words(paint) + "\n")
	}
	for _, note := range o.Notes {
		out.WriteString(paint.Paint(tree.Yellow, "  note: "+note) + "\n")
	}
}

// headline says in a line what happens to an object.
func headline(change *Change, paint tree.Painter) string {
	name := change.Kind + " " + change.Name
	suffix := ""
	if change.Unchecked {
		suffix = " (you may not write it, so the API server was not asked)"
	}
	switch change.Action {
	case Create:
		return paint.Paint(tree.Green, "+ "+name) + " is created" + suffix
	case Delete:
		return paint.Paint(tree.Red, "- "+name) + " is deleted" + suffix
	case Update:
		return paint.Paint(tree.Yellow, "~ "+name) + " changes" + suffix
	}
	return "= " + name + " does not change"
}

// words says what happens to Pods.
func (p *Pods) words(paint tree.Painter) string {
	switch {
	case p.Roll:
		text := fmt.Sprintf("Pods: all %d are replaced by a rolling update", p.Before)
		if p.Strategy != "" {
			text += " (" + p.Strategy + ")"
		}
		if p.Before != p.After {
			text += fmt.Sprintf(", then there are %d", p.After)
		}
		return paint.Paint(tree.Yellow, text)
	case p.Before == 0 && p.After > 0:
		return fmt.Sprintf("Pods: %d are created", p.After)
	case p.Before != p.After:
		return fmt.Sprintf("Pods: %d instead of %d, those that stay are not replaced", p.After, p.Before)
	}
	return "Pods: none is replaced"
}

// Colored returns a unified diff in colors, without what a terminal would obey.
func Colored(diff string, paint tree.Painter) string {
	var out strings.Builder
	for line := range strings.Lines(diff) {
		line = tree.Safe(strings.TrimSuffix(line, "\n"))
		switch {
		case strings.HasPrefix(line, "---"), strings.HasPrefix(line, "+++"):
			line = paint.Paint(tree.Bold, line)
		case strings.HasPrefix(line, "@@"):
			line = paint.Paint(tree.Cyan, line)
		case strings.HasPrefix(line, "-"):
			line = paint.Paint(tree.Red, line)
		case strings.HasPrefix(line, "+"):
			line = paint.Paint(tree.Green, line)
		}
		out.WriteString(line + "\n")
	}
	return out.String()
}

// indent moves lines to the right.
func indent(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		out.WriteString("    " + line)
	}
	return out.String()
}
