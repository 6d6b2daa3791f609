package world

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/test/simulation/check"
	"github.com/example/nginx-operator/test/simulation/storage"
)

// fleetMember is the state of an instance in the fleet rollout.
type fleetMember struct {
	// image is that of the Deployment, and good the last one whose rollout was complete.
	image, good string
	// asked is true if a change other than a release requested a new Pod template since its last
	// change.
	asked bool
	// rolls is true if a release caused the last change of the image, and the rollout is neither
	// complete nor failed.
	rolls bool
}

// Unbounded returns the times at which more instances rolled because of a release than the release
// allows. It counts an instance only if nothing else explains the change of its image.
func (w *World) Unbounded() []string {
	members := map[string]*fleetMember{}
	asker := newAsker()
	released := w.Released
	var out []string
	all := func(change func(*fleetMember)) {
		for _, member := range members {
			change(member)
		}
	}
	for _, version := range w.Store.Since(0) {
		for len(released) > 0 && !released[0].After(version.At) {
			all(func(m *fleetMember) { m.rolls = false })
			released = released[1:]
		}
		for _, attempt := range asker.due(version.At) {
			if m := members[attempt.Instance]; m != nil {
				m.asked, m.rolls = true, false
			}
		}
		member := members[version.Name]
		switch version.Resource {
		case storage.NginxOperators:
			if member == nil {
				member = &fleetMember{}
				members[version.Name] = member
			}
			member.follow(version, asker.asks(version))
		case storage.ConfigMaps, storage.Secrets:
			if !owned(version) {
				all(func(m *fleetMember) { m.asked, m.rolls = true, false })
			}
		case storage.Deployments:
			if member == nil || version.Deleted {
				continue
			}
			if starts := member.deploy(version); !starts {
				continue
			}
			rolling := 0
			all(func(m *fleetMember) { rolling += map[bool]int{true: 1}[m.rolls] })
			if limit := w.Release.Fleet.MaxUnavailable.IntValue(); rolling > limit {
				out = append(out, fmt.Sprintf("at %s, %d instances roll because of a release, with %s, and %d may",
					version.At.Format(time.TimeOnly), rolling, version.Name, limit))
			}
		}
	}
	return out
}

// follow records a write of the instance.
func (m *fleetMember) follow(version *storage.Version, asks []check.Change) {
	if len(asks) > 0 {
		m.asked, m.rolls = true, false
	}
	instance := storage.As[v1alpha2.NginxOperator](version)
	if meta.IsStatusConditionTrue(instance.Status.Conditions, v1alpha2.ConditionDegraded) {
		m.rolls = false
	}
}

// deploy records a write of the Deployment, and reports whether the write starts a rollout because
// of a release.
func (m *fleetMember) deploy(version *storage.Version) bool {
	d := storage.As[appsv1.Deployment](version)
	image := d.Spec.Template.Spec.Containers[0].Image
	if image != m.image {
		m.rolls = !m.asked && m.image != "" && image != m.good && *d.Spec.Replicas > 0 // the way back takes no slot
		m.image, m.asked = image, false
		return m.rolls
	}
	status := d.Status
	if status.ObservedGeneration == d.Generation && status.Replicas == *d.Spec.Replicas && status.UpdatedReplicas == status.Replicas &&
		status.AvailableReplicas >= status.Replicas {
		m.rolls, m.good = false, image
	}
	return false
}
