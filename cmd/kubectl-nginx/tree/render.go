package tree

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/cmd/kubectl-nginx/printer"
)

// node is a line of the tree, and its branches. Only a message can add more lines, which are
// escaped.
type node struct {
	text     string
	children []node
}

// newNode returns a node of one line with branches.
func newNode(text string, children ...node) node { return node{printer.Line(text), children} }

// withMessage returns the node with a message after a separator.
func (n node) withMessage(separator, message string) node {
	if message != "" {
		n.text += separator + printer.Text(message)
	}
	return n
}

// Render writes reports as trees.
func Render(to io.Writer, reports []Report, paint printer.Painter, now time.Time) error {
	var out strings.Builder
	for _, report := range reports {
		root := nodeOf(report, paint, now)
		out.WriteString(root.text + "\n")
		write(&out, root.children, "")
	}
	_, err := io.WriteString(to, out.String())
	return err
}

func write(out *strings.Builder, nodes []node, indent string) {
	for i, one := range nodes {
		branch, below := "├─ ", "│  "
		if i == len(nodes)-1 {
			branch, below = "└─ ", "   "
		}
		lines := strings.Split(strings.TrimRight(one.text, "\n"), "\n")
		out.WriteString(indent + branch + lines[0] + "\n")
		hangs := "   "
		if len(one.children) > 0 {
			hangs = "│  "
		}
		for _, line := range lines[1:] {
			out.WriteString(strings.TrimRight(indent+below+hangs+line, " ") + "\n")
		}
		write(out, one.children, indent+below)
	}
}

func nodeOf(report Report, paint printer.Painter, now time.Time) node {
	words := []string{
		paint.Paint(printer.Bold, fmt.Sprintf("NginxOperator %s/%s", report.Namespace, report.Name)), readyWord(report, paint),
		fmt.Sprintf("%d/%d", report.Replicas.Ready, report.Replicas.Desired),
	}
	if report.Paused {
		words = append(words, paint.Paint(printer.Yellow, "paused"))
	}
	if report.Image != "" {
		words = append(words, report.Image)
	}
	if report.URL != "" {
		words = append(words, report.URL)
	}
	root := newNode(strings.Join(words, "  "))
	add := func(title string, children []node) {
		if len(children) > 0 {
			root.children = append(root.children, newNode(title, children...))
		}
	}
	add(paint.Paint(printer.Red, "Blocked by"), blockers(report, paint))
	if len(report.Conditions) == 0 || report.Reason == "" {
		root.children = append(root.children, newNode(paint.Paint(printer.Yellow, report.Message)))
	}
	add("Conditions", conditions(report, paint, now))
	add("Addresses", addresses(report))
	add("Children", children(report, paint, now))
	add("Certificates", certificates(report, paint, now))
	add("Revisions", revisions(report, paint, now))
	return root
}

func readyWord(report Report, paint printer.Painter) string {
	switch report.Ready {
	case string(metav1.ConditionTrue):
		return paint.Paint(printer.Green, "Ready")
	case string(metav1.ConditionFalse):
		return paint.Paint(printer.Red, "NotReady")
	}
	return paint.Paint(printer.Yellow, "Unknown")
}

func blockers(report Report, paint printer.Painter) (out []node) {
	for _, blocker := range report.BlockedBy {
		one := newNode(paint.Paint(printer.Red, blocker.Reason)).withMessage(": ", blocker.Message)
		if blocker.Remedy != "" {
			one.children = []node{newNode("remedy: " + blocker.Remedy)}
		}
		out = append(out, one)
	}
	return out
}

// goodConditions are the statuses of the conditions of a healthy instance.
var goodConditions = map[string]metav1.ConditionStatus{
	v1alpha2.ConditionReady: metav1.ConditionTrue, v1alpha2.ConditionProgressing: metav1.ConditionFalse,
	v1alpha2.ConditionDegraded: metav1.ConditionFalse, v1alpha2.ConditionCertificatesValid: metav1.ConditionTrue,
	v1alpha2.ConditionOutdated: metav1.ConditionFalse,
}

func conditions(report Report, paint printer.Painter, now time.Time) (out []node) {
	width := 0
	for _, condition := range report.Conditions {
		width = max(width, len(condition.Type))
	}
	printed := sets.New[string]()
	for _, condition := range report.Conditions {
		color := printer.Yellow
		if goodConditions[condition.Type] == condition.Status {
			color = printer.Green
		} else if condition.Type == v1alpha2.ConditionDegraded {
			color = printer.Red
		}
		one := newNode(fmt.Sprintf("%-*s  %s  %s, %s", width, condition.Type, paint.Paint(color, fmt.Sprintf("%-5s", condition.Status)),
			condition.Reason, age(condition.LastTransitionTime, now)))
		if !printed.Has(condition.Message) { // Degraded often has the message of Ready
			one = one.withMessage(": ", condition.Message)
			printed.Insert(condition.Message)
		}
		out = append(out, one)
	}
	return out
}

func addresses(report Report) (out []node) {
	for _, address := range report.Addresses {
		text := fmt.Sprintf("%s %s", address.Type, address.Value)
		if address.Port != 0 {
			text += fmt.Sprintf(" for port %d", address.Port)
		}
		out = append(out, newNode(text))
	}
	return out
}

func children(report Report, paint printer.Painter, now time.Time) (out []node) {
	pods := podNodes(report, paint, now)
	for _, child := range report.Children {
		text := child.Kind + " " + child.Name
		if child.State == "missing" {
			text += "  " + paint.Paint(printer.Red, child.State)
		} else if child.State != "" {
			text += "  " + child.State
		}
		if slices.Contains(report.PatchedKinds, child.Kind) {
			text += "  patched"
		}
		one := newNode(text)
		if child.Kind == "Deployment" {
			one.children, pods = pods, nil
		}
		out = append(out, one)
	}
	return append(out, pods...)
}

func podNodes(report Report, paint printer.Painter, now time.Time) (out []node) {
	for _, pod := range report.Pods {
		state := pod.State
		switch {
		case pod.Ready && state == "Running":
			state = paint.Paint(printer.Green, "ready")
		case state == "Running":
			state = paint.Paint(printer.Yellow, "not ready")
		case state == "Terminating" || state == "Pending" || state == "ContainerCreating":
			state = paint.Paint(printer.Yellow, state)
		default:
			state = paint.Paint(printer.Red, state)
		}
		text := fmt.Sprintf("Pod %s  %s", pod.Name, state)
		if pod.Restarts > 0 {
			text += fmt.Sprintf("  %d restarts", pod.Restarts)
		}
		if pod.Node != "" {
			text += "  on " + pod.Node
		}
		if pod.Image != report.Image {
			text += "  " + pod.Image
		}
		out = append(out, newNode(text+"  "+age(pod.Created, now)))
	}
	return out
}

func certificates(report Report, paint printer.Painter, now time.Time) (out []node) {
	for _, one := range report.Certificates {
		left := one.NotAfter.Sub(now)
		text := fmt.Sprintf("expires in %s, %s", short(left), one.NotAfter.UTC().Format(time.RFC3339))
		if left <= 0 {
			text = paint.Paint(printer.Red, fmt.Sprintf("expired %s", age(one.NotAfter, now)))
		}
		text = fmt.Sprintf("Secret %s  %s", one.SecretName, text)
		if len(one.DNSNames) > 0 {
			text += "  for " + strings.Join(one.DNSNames, ",")
		}
		if one.Issuer != "" {
			text += "  by " + one.Issuer
		}
		out = append(out, newNode(text))
	}
	return out
}

func revisions(report Report, paint printer.Painter, now time.Time) (out []node) {
	words := map[string]string{
		LastGood: paint.Paint(printer.Green, "last good"), Failed: paint.Paint(printer.Red, "failed"), Current: "being applied",
	}
	for _, one := range report.Revisions {
		text := fmt.Sprintf("%s  %s", one.Name, words[one.State])
		if one.Image != "" {
			text += "  " + one.Image
		}
		if one.State != Current {
			text += "  " + age(one.Time, now)
		}
		out = append(out, newNode(text).withMessage("\n"+printer.Line(one.Reason)+": ", one.Message))
	}
	return out
}

// short returns a time span in the short form of kubectl.
func short(span time.Duration) string { return duration.HumanDuration(span) }
