package check

import (
	"encoding/json"
	"fmt"
	"time"
)

// Change is one write of an object.
type Change struct {
	// Instance is the NginxOperator of the object.
	Instance string
	// Child is the kind of the child that got the spec.
	Child string
	// Spec is the spec of a child, or the Pod template of a Deployment. It is nil for other
	// objects.
	Spec any
	// At is the time of the write.
	At time.Time
	// Asks is true if the write requests other children: a new generation, other content that a
	// spec references, another release, or a failed rollout. It applies to all instances if
	// Instance is "".
	Asks bool
	// OldPods is true if the operator may not have seen the current Pods and ReplicaSets yet,
	// because it started on an older view of them.
	OldPods bool
}

func textOf(spec any) string {
	raw, err := json.Marshal(spec)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// Templates returns the instances whose Pod template changed more often than requested.
func Templates(history []Change) []string {
	asks, changes, last := map[string]int{}, map[string]int{}, map[string]string{}
	general := 0
	var out []string
	for _, change := range history {
		switch {
		case change.Asks && change.Instance == "":
			general++
		case change.Asks:
			asks[change.Instance]++
		case change.Child == "Deployment":
			name, text := change.Instance, textOf(change.Spec)
			if last[name] == text {
				continue
			}
			last[name] = text
			if changes[name]++; changes[name] > asks[name]+general {
				out = append(out, fmt.Sprintf("%s: the Pod template changed %d times, and %d things asked for it",
					name, changes[name], asks[name]+general))
			}
		}
	}
	return out
}
