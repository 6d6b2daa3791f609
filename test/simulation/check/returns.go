package check

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// inFlight is the maximum time between the operator's read of an object and the write that the
// object requests.
const inFlight = 10 * time.Second

// requests has the times of requests for other children, by instance. The key "" has the requests
// for all instances.
type requests map[string][]time.Time

// between counts the requests after from and not after to.
func (r requests) between(instance string, from, to time.Time) int {
	count := 0
	for _, name := range []string{"", instance} {
		for _, at := range r[name] {
			if at.After(from) && !at.After(to) {
				count++
			}
		}
	}
	return count
}

// past has the current and the earlier specs of a child.
type past struct {
	now string
	// replaced has the time at which each earlier spec was replaced.
	replaced map[string]time.Time
}

// write records the spec of a write, and returns the problem or "".
func (p *past) write(change Change, asks requests) string {
	text := textOf(change.Spec)
	if text == p.now {
		return ""
	}
	left, isEarlier := p.replaced[text]
	if isEarlier && change.OldPods && change.Child == "NetworkPolicy" && closesNothing(p.now, text) {
		// The operator sees Pods that have ended, and opens their ports again until it sees the
		// current ones. Nobody listens on these ports. To close a port too early drops requests.
		return ""
	}
	replaced := p.now
	p.replaced[replaced], p.now = change.At, text

	// The request for the replacement precedes the replacement. Only another request may restore
	// the earlier spec.
	if !isEarlier || asks.between(change.Instance, left, change.At) > 0 || asks.between(change.Instance, left.Add(-inFlight), change.At) > 1 {
		return ""
	}
	was, is := excerpts(replaced, text)
	return fmt.Sprintf("%s %s got an earlier spec again at %s, and nothing asked for it:\n  before %s\n  after  %s",
		change.Child, change.Instance, change.At.Format(time.TimeOnly), was, is)
}

// closesNothing reports whether a NetworkPolicy admits all peers to all ports that another one
// admits them to. Both are specs in the form of textOf.
func closesNothing(before, after string) bool {
	var was, is networkingv1.NetworkPolicySpec
	if json.Unmarshal([]byte(before), &was) != nil || json.Unmarshal([]byte(after), &is) != nil {
		return false
	}
	for _, rule := range was.Ingress {
		if !slices.ContainsFunc(is.Ingress, func(other networkingv1.NetworkPolicyIngressRule) bool {
			return equality.Semantic.DeepEqual(rule.From, other.From) && hasAll(other.Ports, rule.Ports)
		}) {
			return false
		}
	}
	return true
}

func hasAll(ports, wanted []networkingv1.NetworkPolicyPort) bool {
	for _, port := range wanted {
		if !slices.ContainsFunc(ports, func(p networkingv1.NetworkPolicyPort) bool { return equality.Semantic.DeepEqual(p, port) }) {
			return false
		}
	}
	return true
}

// Returns returns the children that got an earlier spec again without a request. In this case, an
// older declaration was written.
func Returns(history []Change) []string {
	asks, children := requests{}, map[string]*past{}
	var out []string
	for _, change := range history {
		if change.Asks {
			asks[change.Instance] = append(asks[change.Instance], change.At)
			continue
		}
		name := change.Child + " " + change.Instance
		if children[name] == nil {
			children[name] = &past{now: textOf(change.Spec), replaced: map[string]time.Time{}}
		}
		if problem := children[name].write(change, asks); problem != "" {
			out = append(out, problem)
		}
	}
	return out
}
