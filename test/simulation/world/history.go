package world

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/test/simulation/check"
	"github.com/example/nginx-operator/test/simulation/storage"
)

// asker finds the writes of NginxOperators that request other children.
type asker struct {
	generations map[string]int64
	failures    map[string]string
	// attempts has the time of the next attempt of a failed revision.
	attempts map[string]time.Time
}

func newAsker() asker { return asker{map[string]int64{}, map[string]string{}, map[string]time.Time{}} }

// due returns the attempts that start until a time.
func (a *asker) due(now time.Time) []check.Change {
	var out []check.Change
	for name, at := range a.attempts {
		if !at.After(now) {
			out = append(out, check.Change{Instance: name, Asks: true, At: at})
			delete(a.attempts, name)
		}
	}
	return out
}

func (a *asker) asks(version *storage.Version) []check.Change {
	instance := storage.As[v1alpha2.NginxOperator](version)
	ask := check.Change{Instance: version.Name, Asks: true, At: version.At}
	var out []check.Change
	if version.Deleted || instance.Generation != a.generations[version.Name] {
		out = append(out, ask)
	}
	var failed []string
	for _, one := range instance.Status.FailedRevisions {
		failed = append(failed, fmt.Sprint(one.Revision, one.Attempts))
		if one.NextAttemptTime != nil {
			a.attempts[version.Name] = one.NextAttemptTime.Time
		}
	}
	if text := strings.Join(failed, " "); text != a.failures[version.Name] {
		out = append(out, ask)
		a.failures[version.Name] = text
	}
	a.generations[version.Name] = instance.Generation
	return out
}

// pods has the number of Pods by the name of the Deployment.
type pods map[string]int64

// end reports whether the last Pod of a Deployment is gone. Ports have interim names only while
// Pods use their own.
func (p pods) end(version *storage.Version) bool {
	now, _, _ := unstructured.NestedInt64(version.Object, "status", "replicas")
	before := p[version.Name]
	p[version.Name] = now
	return now == 0 && before > 0
}

// History returns the requests for other children, and the specs that children got, in order.
func (w *World) History() []check.Change {
	var out []check.Change
	asker := newAsker()
	pods, released := pods{}, w.Released
	for _, version := range w.Store.Since(0) {
		out = append(out, asker.due(version.At)...)
		for len(released) > 0 && !released[0].After(version.At) {
			// The previous release may have deferred a change that the next release applies.
			out = append(out, check.Change{Asks: true, At: released[0]})
			released = released[1:]
		}
		switch version.Resource {
		case storage.NginxOperators:
			out = append(out, asker.asks(version)...)
		case storage.ConfigMaps, storage.Secrets:
			if !owned(version) {
				out = append(out, check.Change{Asks: true, At: version.At})
			}
		case storage.Deployments:
			if pods.end(version) {
				out = append(out, check.Change{Instance: version.Name, Asks: true, At: version.At})
			}
			out = appendSpec(out, version, "spec", "template")
		case storage.Services, storage.NetworkPolicies, storage.Ingresses:
			before := len(out)
			out = appendSpec(out, version, "spec")
			for i := range out[before:] {
				out[before+i].OldPods = w.podsView(version.At) > 0
			}
		}
	}
	return out
}

// podsView returns the resource version of the older view of the Pods, with which the process
// started, from which a write at a time may follow. It is 0 if there is none.
func (w *World) podsView(at time.Time) (view int64) {
	for _, start := range w.starts {
		switch {
		case start.at.After(at):
		case at.Sub(start.at) <= viewTime+inFlight:
			view = start.podsView
		default:
			view = 0
		}
	}
	return view
}

// appendSpec appends the spec that a child got, without the parts that the API server allocates. It
// ignores objects without an owner.
func appendSpec(out []check.Change, version *storage.Version, path ...string) []check.Change {
	spec, found, _ := unstructured.NestedMap(version.Object, path...)
	if !found || version.Deleted || !owned(version) {
		return out
	}
	for name := range spec {
		if strings.HasPrefix(name, "clusterIP") || strings.HasPrefix(name, "ipFamil") {
			delete(spec, name)
		}
	}
	return append(out, check.Change{Instance: version.Name, Child: version.Resource.Kind, Spec: spec, At: version.At})
}

// owned reports whether an object has an owner.
func owned(version *storage.Version) bool { return len(version.Meta().GetOwnerReferences()) > 0 }
