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

// node is a line of the tree, and its branches. Only a message can add more lines.
type node struct {
	text     string
	children []node
}

func newNode(text string, children ...node) node { return node{printer.Line(text), children} }

func (n node) withMessage(separator, message string) node {
	if message != "" {
		n.text += separator + printer.Text(message)
	}
	return n
}

func columns(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), "  ")
}

func optional[T comparable](format string, value T) string {
	if value == *new(T) {
		return ""
	}
	return fmt.Sprintf(format, value)
}

// Render writes a report as a tree.
func Render(to io.Writer, report Report, paint printer.Painter, now time.Time) error {
	var tree strings.Builder
	root := nodeOf(report, paint, now)
	tree.WriteString(root.text + "\n")
	write(&tree, root.children, "")
	_, err := io.WriteString(to, tree.String())
	return err
}

func write(tree *strings.Builder, nodes []node, indent string) {
	for i, branch := range nodes {
		start, below, hanging := "├─ ", "│  ", "   "
		if i == len(nodes)-1 {
			start, below = "└─ ", "   "
		}
		if len(branch.children) > 0 {
			hanging = "│  "
		}

		first, others, _ := strings.Cut(strings.TrimRight(branch.text, "\n"), "\n")
		tree.WriteString(indent + start + first + "\n")
		for line := range strings.Lines(others) {
			tree.WriteString(strings.TrimRight(indent+below+hanging+line, " \n") + "\n")
		}

		write(tree, branch.children, indent+below)
	}
}

func nodeOf(report Report, paint printer.Painter, now time.Time) node {
	paused := ""
	if report.Paused {
		paused = paint.Paint(printer.Yellow, "paused")
	}

	root := newNode(columns(
		paint.Paint(printer.Bold, fmt.Sprintf("NginxOperator %s/%s", report.Namespace, report.Name)), readyWord(report, paint),
		fmt.Sprintf("%d/%d", report.Replicas.Ready, report.Replicas.Desired), paused, report.Image, report.URL,
	))

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
	add(paint.Paint(printer.Yellow, "Forbidden"), forbidden(report))
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

func blockers(report Report, paint printer.Painter) (nodes []node) {
	for _, blocker := range report.BlockedBy {
		blocked := newNode(paint.Paint(printer.Red, blocker.Reason)).withMessage(": ", blocker.Message)
		if blocker.Remedy != "" {
			blocked.children = []node{newNode("remedy: " + blocker.Remedy)}
		}
		nodes = append(nodes, blocked)
	}
	return nodes
}

var goodConditions = map[string]metav1.ConditionStatus{
	v1alpha2.ConditionReady: metav1.ConditionTrue, v1alpha2.ConditionProgressing: metav1.ConditionFalse,
	v1alpha2.ConditionDegraded: metav1.ConditionFalse, v1alpha2.ConditionCertificatesValid: metav1.ConditionTrue,
	v1alpha2.ConditionOutdated: metav1.ConditionFalse,
}

func conditions(report Report, paint printer.Painter, now time.Time) (nodes []node) {
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

		status := paint.Paint(color, fmt.Sprintf("%-5s", condition.Status))
		line := newNode(fmt.Sprintf("%-*s  %s  %s, %s", width, condition.Type, status, condition.Reason,
			age(condition.LastTransitionTime, now)))
		if !printed.Has(condition.Message) { // Degraded often has the message of Ready
			line = line.withMessage(": ", condition.Message)
			printed.Insert(condition.Message)
		}

		nodes = append(nodes, line)
	}

	return nodes
}

func addresses(report Report) (nodes []node) {
	for _, address := range report.Addresses {
		nodes = append(nodes, newNode(string(address.Type)+" "+address.Value+optional(" for port %d", address.Port)))
	}
	return nodes
}

func children(report Report, paint printer.Painter, now time.Time) (nodes []node) {
	pods := podNodes(report, paint, now)
	for _, child := range report.Children {
		state, patched := child.State, ""
		switch state {
		case "missing":
			state = paint.Paint(printer.Red, state)
		case "unknown":
			state = paint.Paint(printer.Yellow, state)
		}
		if slices.Contains(report.PatchedKinds, child.Kind) {
			patched = "patched"
		}

		line := newNode(columns(child.Kind+" "+child.Name, state, patched))
		if child.Kind == "Deployment" {
			line.children, pods = pods, nil
		}

		nodes = append(nodes, line)
	}

	return append(nodes, pods...)
}

func podNodes(report Report, paint printer.Painter, now time.Time) (nodes []node) {
	for _, pod := range report.Pods {
		state, image := pod.State, pod.Image
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

		if image == report.Image {
			image = ""
		}

		nodes = append(nodes, newNode(columns("Pod "+pod.Name, state, optional("%d restarts", pod.Restarts),
			optional("on %s", pod.Node), image, age(pod.Created, now))))
	}
	return nodes
}

func certificates(report Report, paint printer.Painter, now time.Time) (nodes []node) {
	for _, certificate := range report.Certificates {
		left := certificate.NotAfter.Sub(now)
		date := certificate.NotAfter.UTC().Format(time.RFC3339)
		expires := fmt.Sprintf("expires in %s, %s", duration.HumanDuration(left), date)
		if left <= 0 {
			expires = paint.Paint(printer.Red, fmt.Sprintf("expired %s", age(certificate.NotAfter, now)))
		}

		nodes = append(nodes, newNode(columns("Secret "+certificate.SecretName, expires,
			optional("for %s", strings.Join(certificate.DNSNames, ",")), optional("by %s", certificate.Issuer))))
	}
	return nodes
}

func revisions(report Report, paint printer.Painter, now time.Time) (nodes []node) {
	words := map[string]string{
		LastGood: paint.Paint(printer.Green, "last good"), Failed: paint.Paint(printer.Red, "failed"), Current: "being applied",
	}
	for _, revision := range report.Revisions {
		since := ""
		if revision.State != Current {
			since = age(revision.Time, now)
		}

		line := newNode(columns(revision.Name, words[revision.State], revision.Image, since))
		nodes = append(nodes, line.withMessage("\n"+printer.Line(revision.Reason)+": ", revision.Message))
	}
	return nodes
}

func forbidden(report Report) (nodes []node) {
	resources, verbs := map[string][]string{}, []string{}
	for _, missing := range report.Forbidden {
		if resources[missing.Verb] == nil {
			verbs = append(verbs, missing.Verb)
		}
		if !slices.Contains(resources[missing.Verb], missing.Resource) {
			resources[missing.Verb] = append(resources[missing.Verb], missing.Resource)
		}
	}

	for _, verb := range verbs {
		nodes = append(nodes, newNode(fmt.Sprintf("you cannot %s %s", verb, strings.Join(resources[verb], ", "))))
	}
	if len(nodes) > 0 {
		nodes = append(nodes, newNode("remedy: ask for the ClusterRole view in the namespace "+report.Namespace))
	}

	return nodes
}

func age(event metav1.Time, now time.Time) string {
	if event.IsZero() {
		return "at an unknown time"
	}
	return duration.HumanDuration(now.Sub(event.Time)) + " ago"
}
