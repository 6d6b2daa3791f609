package simulation

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/json"

	"github.com/example/nginx-operator/test/simulation/storage"
)

// The directories of testdata have the objects of a cluster as a release left them in each state,
// with S1 and S2 of the other histories. The operator of that release wrote them in this
// simulation.

// left is a state in which a release left an instance.
type left struct {
	state
	// fault restores what makes S2 fail.
	fault func(*history)
	// edition is the entrance that is in effect. Releases before 0.8.0 wrote it with the Pods.
	edition string
	// writes are kinds that the first reconcile writes, because the spec asks for it.
	writes []*storage.Resource
}

var leftBehind = []left{
	{state: state{name: "current", image: oldDefault}, edition: "1"},
	{state: state{name: "rolling", image: badImage}, edition: "2", fault: func(h *history) { h.lose("i/o timeout") }},
	{state: state{name: "waiting for a slot", image: oldDefault}, edition: "1", fault: func(h *history) {
		h.unpullable(newDefault, "i/o timeout")
		h.Release.Image = newDefault
	}},
	{state: state{name: "blocked", image: oldDefault}, edition: "1"},
	{state: state{name: "paused", image: oldDefault}, edition: "1"},
	{state: state{name: "rolled back", image: oldDefault}, edition: "1", fault: func(h *history) { h.lose("not found") }},
	{
		state: state{name: "edited while no operator ran", image: oldDefault}, edition: "2",
		writes: []*storage.Resource{
			storage.Services, storage.NetworkPolicies, storage.Ingresses, storage.Deployments, storage.ControllerRevisions,
		},
	},
}

// fileOf returns the name of the file with the objects in a state.
func fileOf(state string) string { return strings.ReplaceAll(state, " ", "-") + ".json" }

// load brings the cluster to the state in which a release left it.
func (h *history) load(release string, from left) {
	raw, err := os.ReadFile(filepath.Join("testdata", release, fileOf(from.name)))
	h.Must(err)
	var recorded struct {
		Now     time.Time        `json:"now"`
		Objects []map[string]any `json:"objects"`
	}
	h.Must(json.Unmarshal(raw, &recorded))
	h.Stop()
	time.Sleep(time.Until(recorded.Now))
	h.Store.Load(recorded.Objects)
	if from.fault != nil {
		from.fault(h)
	}
}

// upgraded requires that the operator replaces no Pod, fails no request, and writes no child of
// objects that an earlier release left, and that the next change works.
func upgraded(release string, from left) func(*history) {
	return func(h *history) {
		h.load(release, from)
		served, before := h.readyNames(), h.Store.Revision()
		h.need(len(served) > 0, "no Pod is ready: %s", h.seen())
		h.Start(0)
		h.gets(from.edition, time.Minute)
		h.during(5*time.Minute, "the same Pods", func() bool { return h.runs(from.image) && slices.Equal(h.readyNames(), served) })
		h.answers(before, 8080)
		if len(from.writes) == 0 {
			h.kept(from.edition, before)
		}
		for _, version := range h.Store.Since(before) {
			if isChild(version.Resource) && version.Requested && !slices.Contains(from.writes, version.Resource) {
				h.errorf("the upgrade writes %s", version)
			}
		}

		h.Heal()
		h.writeConfiguration(goodConfiguration)
		h.change(pause(false), variable("3"), entrance("3"), useImage(ownImage))
		h.within(15*time.Minute, "S3", func() bool { return h.current() && h.now().servesEdition("3") && h.now().edition() == "3" })
		h.answers(before, 8080)
	}
}

// failsLater requires that a rollout that 0.7.1 began is rolled back to the Pods that served, and
// that the next change works.
func failsLater(h *history) {
	h.load("0.7.1", leftBehind[1])
	before := h.Store.Revision()
	h.Start(0)
	h.within(20*time.Minute, "a rollback", func() bool { return h.degraded() && h.runs(oldDefault) })
	h.during(time.Minute, "the Pods that served", func() bool { return h.runs(oldDefault) })
	h.goesOn(before)
}

// failsAfter requires that the first change after an upgrade is rolled back to what an earlier
// release left.
func failsAfter(h *history) {
	h.load("0.7.1", leftBehind[0])
	before := h.Store.Revision()
	h.Start(0)
	h.Run(time.Minute)
	h.lose("not found")
	h.change(useImage(badImage), entrance("2"))
	h.within(5*time.Minute, "a rollback", func() bool { return h.degraded() && h.runs(oldDefault) })
	h.during(90*time.Second, "S1", func() bool { return h.runs(oldDefault) && h.now().edition() == "1" })
	h.goesOn(before)
}

// goesOn requires that the next change works, and that no request has failed.
func (h *history) goesOn(before int64) {
	h.Heal()
	h.change(variable("3"), entrance("3"), useImage(ownImage))
	h.within(15*time.Minute, "S3", func() bool { return h.current() && h.now().servesEdition("3") && h.now().edition() == "3" })
	h.answers(before, 8080)
}

// isChild reports whether the operator writes objects of a kind for an instance.
func isChild(of *storage.Resource) bool {
	return slices.Contains([]*storage.Resource{
		storage.Services, storage.NetworkPolicies, storage.Ingresses, storage.PodDisruptionBudgets, storage.ConfigMaps, storage.Deployments,
		storage.ControllerRevisions,
	}, of)
}

// entirely are the kinds that the upgrade from 0.6.0 may write: 0.7.1 changed the form of
// NetworkPolicies and Services, and the default of the progress deadline.
var entirely = []*storage.Resource{
	storage.Services, storage.NetworkPolicies, storage.Ingresses, storage.Deployments, storage.ControllerRevisions,
}

// upgrades has the upgrades of each release in each state.
var upgrades = append(fromEach("0.6.0", "0.7.1"),
	tale{"history-18 an upgrade from 0.7.1, and its rollout fails", past(failsLater)},
	tale{"history-18 an upgrade from 0.7.1, and the next change fails", past(failsAfter)},
)

func fromEach(releases ...string) (out []tale) {
	for _, release := range releases {
		for _, from := range leftBehind {
			if release == "0.6.0" {
				from.writes = entirely
			}
			out = append(out, tale{"history-18 an upgrade from " + release + ", " + from.name, past(upgraded(release, from))})
		}
	}
	return out
}
