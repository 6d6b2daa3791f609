package simulation

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/test/simulation/storage"
	"github.com/example/nginx-operator/test/simulation/world"
)

type spec = v1alpha2.NginxOperatorSpec

// tale is a story that TestStories tells: what happens in a world, and what a user must observe.
// Names start with the row or the history that they come from, for example "row-05" or
// "history-3a", and have no colon.
type tale struct {
	name string
	tell func(*story)
}

// chapters has all stories. A file with stories adds its table here.
var chapters = [][]tale{basics, rolloutRows, childRows, entrances, fleets, failures, byHand, upgrades}

// story is a world while a tale is told. Its instance is "web", unless a tale needs several.
type story struct {
	*world.World
	t        *testing.T
	failures []string
}

// TestStories tells all stories. To run the stories of a row: -run 'TestStories/row-05'
func TestStories(t *testing.T) {
	told := map[string]bool{}
	for _, chapter := range chapters {
		for _, one := range chapter {
			if told[one.name] {
				t.Errorf("two stories have the name %q", one.name)
			}
			told[one.name] = true
			t.Run(one.name, func(t *testing.T) {
				if failures := tell(t, one.tell); len(failures) > 0 {
					t.Error(strings.Join(failures, "\n"))
				}
			})
		}
	}
}

// tell returns what a user must not observe, but did.
func tell(t *testing.T, of func(*story)) (failures []string) {
	inWorld(t, func(t *testing.T, w *world.World) {
		s := &story{World: w, t: t}
		of(s)
		failures = slices.Concat(s.failures, w.Problems)
	})
	return failures
}

// errorf records what a user must not observe. Use it for what the story is about.
func (s *story) errorf(format string, args ...any) {
	s.failures = append(s.failures, fmt.Sprintf(format, args...))
}

// need ends the test unless a condition of the story holds. It fails a listed story, too, because
// the story would otherwise fail for another reason than the listed one.
func (s *story) need(holds bool, format string, args ...any) {
	s.t.Helper()
	if !holds {
		s.t.Fatalf(format, args...)
	}
}

// serve creates the instance with two replicas, and runs until a minute after it is ready.
func (s *story) serve(changes ...func(*spec)) {
	s.t.Helper()
	serve(s.t, s.World, "web", func(of *spec) {
		for _, change := range changes {
			change(of)
		}
	})
	s.Run(time.Minute)
}

// edit changes the spec of the instance. The API server must accept the change.
func (s *story) edit(change func(*spec)) {
	s.t.Helper()
	instance := s.Instance("web")
	change(&instance.Spec)
	err := s.Write(instance)
	s.need(err == nil, "the spec was refused: %v", err)
}

// badImage is the image that losesImage makes unavailable.
const badImage = "registry.example/missing:1"

func useBadImage(of *spec) { of.Image = badImage }

// lose makes badImage unavailable. The registry says why: "not found" fails a change at once, and
// "i/o timeout" at its deadline.
func (s *story) lose(why string) {
	s.Kube.Faults.Unpullable = map[string]string{badImage: why}
	s.Kube.Changed()
}

// image returns the image of the Deployment.
func (s *story) image() string {
	s.t.Helper()
	containers := s.Deployment("web").Spec.Template.Spec.Containers
	s.need(len(containers) > 0, "there is no Deployment")
	return containers[0].Image
}

// exists reports whether there is an object of a kind with the name of the instance.
func (s *story) exists(of *storage.Resource) bool {
	return s.Store.Get(keyOf(of)) != nil
}

// keyOf returns the key of the instance, or of its child.
func keyOf(of *storage.Resource) storage.Key {
	return storage.Key{Resource: of, Namespace: world.Namespace, Name: "web"}
}

// isReady reports whether the instance is ready with its current spec.
func (s *story) isReady() bool {
	ready := s.condition(v1alpha2.ConditionReady)
	return ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == s.Instance("web").Generation
}

// condition returns a condition of the instance, or an empty one.
func (s *story) condition(name string) metav1.Condition {
	return ptr.Deref(meta.FindStatusCondition(s.Instance("web").Status.Conditions, name), metav1.Condition{})
}

// explained returns all text of the status that says why the running state differs from the spec.
func (s *story) explained() string {
	degraded := s.condition(v1alpha2.ConditionDegraded)
	out := degraded.Message
	for _, blocker := range s.Instance("web").Status.BlockedBy {
		out += fmt.Sprintf("\n%s: %s", blocker.Reason, blocker.Message)
	}
	return out
}

// basics are stories of what every release did.
var basics = []tale{
	{"basic a failed image is rolled back, and a good one is applied", func(s *story) {
		s.serve()
		good := s.image()
		s.lose("not found")
		s.edit(useBadImage)
		s.Run(5 * time.Minute)
		if s.image() != good || s.condition(v1alpha2.ConditionDegraded).Reason != v1alpha2.ReasonRolledBack {
			s.errorf("not rolled back: image %s, %s", s.image(), s.explained())
		}
		s.edit(func(of *spec) { of.Image = "registry.example/own:1" })
		s.Run(5 * time.Minute)
		if s.image() != "registry.example/own:1" || !s.isReady() {
			s.errorf("not applied: image %s, %s", s.image(), s.explained())
		}
	}},
}
