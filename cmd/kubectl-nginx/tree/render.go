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
)

// node is a line of the tree, and what hangs on it.
type node struct {
	text     string
	children []node
}

// Painter puts colors into a text.
type Painter struct {
	// On: colors are used.
	On bool
}

// The colors, as in terminals (ECMA-48).
const (
	Red    = "31"
	Green  = "32"
	Yellow = "33"
	Cyan   = "36"
	Bold   = "1"
)

// Paint returns a text in a color.
func (p Painter) Paint(color, text string) string {
	if !p.On || text == "" {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

// Render writes reports as trees.
func Render(to io.Writer, reports []Report, paint Painter, now time.Time) error {
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

func nodeOf(report Report, paint Painter, now time.Time) node {
	words := []string{
		paint.Paint(Bold, fmt.Sprintf("NginxOperator %s/%s", report.Namespace, report.Name)), readyWord(report, paint),
		fmt.Sprintf("%d/%d", report.Replicas.Ready, report.Replicas.Desired),
	}
	if report.Paused {
		words = append(words, paint.Paint(Yellow, "paused"))
	}
	if report.Image != "" {
		words = append(words, report.Image)
	}
	if report.URL != "" {
		words = append(words, report.URL)
	}
	root := node{text: strings.Join(words, "  ")}
	add := func(title string, children []node) {
		if len(children) > 0 {
			root.children = append(root.children, node{title, children})
		}
	}
	add(paint.Paint(Red, "Blocked by"), blockers(report, paint))
	if len(report.Conditions) == 0 || report.Reason == "" {
		root.children = append(root.children, node{text: paint.Paint(Yellow, report.Message)})
	}
	add("Conditions", conditions(report, paint, now))
	add("Addresses", addresses(report))
	add("Children", children(report, paint, now))
	add("Certificates", certificates(report, paint, now))
	add("Revisions", revisions(report, paint, now))
	return root
}

func readyWord(report Report, paint Painter) string {
	switch report.Ready {
	case string(metav1.ConditionTrue):
		return paint.Paint(Green, "Ready")
	case string(metav1.ConditionFalse):
		return paint.Paint(Red, "NotReady")
	}
	return paint.Paint(Yellow, "Unknown")
}

func blockers(report Report, paint Painter) (out []node) {
	for _, blocker := range report.BlockedBy {
		one := node{text: paint.Paint(Red, blocker.Reason) + ": " + Safe(blocker.Message)}
		if blocker.WayOut != "" {
			one.children = []node{{text: "way out: " + blocker.WayOut}}
		}
		out = append(out, one)
	}
	return out
}

// goodConditions are the statuses of conditions when all is well.
var goodConditions = map[string]metav1.ConditionStatus{
	v1alpha2.ConditionReady: metav1.ConditionTrue, v1alpha2.ConditionProgressing: metav1.ConditionFalse,
	v1alpha2.ConditionDegraded: metav1.ConditionFalse, v1alpha2.ConditionCertificatesValid: metav1.ConditionTrue,
}

func conditions(report Report, paint Painter, now time.Time) (out []node) {
	width := 0
	for _, condition := range report.Conditions {
		width = max(width, len(condition.Type))
	}
	said := sets.New[string]()
	for _, condition := range report.Conditions {
		color := Yellow
		if goodConditions[condition.Type] == condition.Status {
			color = Green
		} else if condition.Type == v1alpha2.ConditionDegraded {
			color = Red
		}
		text := fmt.Sprintf("%-*s  %s  %s, %s", width, condition.Type, paint.Paint(color, fmt.Sprintf("%-5s", condition.Status)),
			condition.Reason, age(condition.LastTransitionTime, now))
		if condition.Message != "" && !said.Has(condition.Message) { // Degraded mostly says what Ready has said
			text += ": " + Safe(condition.Message)
			said.Insert(condition.Message)
		}
		out = append(out, node{text: text})
	}
	return out
}

func addresses(report Report) (out []node) {
	for _, address := range report.Addresses {
		text := fmt.Sprintf("%s %s", address.Type, Safe(address.Value))
		if address.Port != 0 {
			text += fmt.Sprintf(" for port %d", address.Port)
		}
		out = append(out, node{text: text})
	}
	return out
}

func children(report Report, paint Painter, now time.Time) (out []node) {
	pods := podNodes(report, paint, now)
	for _, child := range report.Children {
		text := child.Kind + " " + child.Name
		if child.State == "missing" {
			text += "  " + paint.Paint(Red, child.State)
		} else if child.State != "" {
			text += "  " + child.State
		}
		if slices.Contains(report.PatchedKinds, child.Kind) {
			text += "  patched"
		}
		one := node{text: text}
		if child.Kind == "Deployment" {
			one.children, pods = pods, nil
		}
		out = append(out, one)
	}
	return append(out, pods...)
}

func podNodes(report Report, paint Painter, now time.Time) (out []node) {
	for _, pod := range report.Pods {
		state := pod.State
		switch {
		case pod.Ready && state == "Running":
			state = paint.Paint(Green, "ready")
		case state == "Running":
			state = paint.Paint(Yellow, "not ready")
		case state == "Terminating" || state == "Pending" || state == "ContainerCreating":
			state = paint.Paint(Yellow, state)
		default:
			state = paint.Paint(Red, Safe(state))
		}
		text := fmt.Sprintf("Pod %s  %s", pod.Name, state)
		if pod.Restarts > 0 {
			text += fmt.Sprintf("  %d restarts", pod.Restarts)
		}
		if pod.Node != "" {
			text += "  on " + pod.Node
		}
		if pod.Image != report.Image {
			text += "  " + Safe(pod.Image)
		}
		out = append(out, node{text: text + "  " + age(pod.Created, now)})
	}
	return out
}

func certificates(report Report, paint Painter, now time.Time) (out []node) {
	for _, one := range report.Certificates {
		left := one.NotAfter.Sub(now)
		text := fmt.Sprintf("expires in %s, %s", short(left), one.NotAfter.UTC().Format(time.RFC3339))
		if left <= 0 {
			text = paint.Paint(Red, fmt.Sprintf("expired %s", age(one.NotAfter, now)))
		}
		text = fmt.Sprintf("Secret %s  %s", one.SecretName, text)
		if len(one.DNSNames) > 0 {
			text += "  for " + Safe(strings.Join(one.DNSNames, ","))
		}
		if one.Issuer != "" {
			text += "  by " + Safe(one.Issuer)
		}
		out = append(out, node{text: text})
	}
	return out
}

func revisions(report Report, paint Painter, now time.Time) (out []node) {
	words := map[string]string{LastGood: paint.Paint(Green, "last good"), Failed: paint.Paint(Red, "failed"), Current: "being applied"}
	for _, one := range report.Revisions {
		text := fmt.Sprintf("%s  %s", one.Name, words[one.State])
		if one.Image != "" {
			text += "  " + Safe(one.Image)
		}
		text += "  " + age(one.Time, now)
		if one.Message != "" {
			text += "\n" + one.Reason + ": " + Safe(one.Message)
		}
		out = append(out, node{text: text})
	}
	return out
}

// Safe returns a text that others wrote without what a terminal would obey.
func Safe(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return '\uFFFD'
		}
		return r
	}, text)
}

// short returns a time span in the short form of kubectl.
func short(span time.Duration) string { return duration.HumanDuration(span) }
