package world

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/example/nginx-operator/test/simulation/storage"
)

// eventLog stores the Events of all processes.
type eventLog struct {
	mu    sync.Mutex
	lines []string
}

// Eventf implements events.EventRecorder. A process that was killed emits no Event.
func (p *process) Eventf(regarding, _ runtime.Object, kind, reason, _, note string, args ...any) {
	object, err := meta.Accessor(regarding)
	if err != nil {
		panic(err) // every API object has metadata
	}
	if isClosed(p.killed) {
		return
	}
	p.events.mu.Lock()
	defer p.events.mu.Unlock()
	p.events.lines = append(p.events.lines, fmt.Sprintf("%s %s %s: %s", object.GetName(), kind, reason, fmt.Sprintf(note, args...)))
}

// All returns the Events in order, for example "web Warning Forbidden: the message".
func (e *eventLog) All() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.lines)
}

// Metric returns the value of the operator's gauge that has a label with a value, or 0.
func (w *World) Metric(name, label, value string) float64 {
	families, err := w.operator.registry.Gather()
	w.Must(err)
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			for _, pair := range metric.GetLabel() {
				if family.GetName() == name && pair.GetName() == label && pair.GetValue() == value {
					return metric.GetGauge().GetValue()
				}
			}
		}
	}
	return 0
}

// Started returns the time at which the running operator started.
func (w *World) Started() time.Time { return w.operator.started }

// Install creates the CustomResourceDefinition of an optional kind.
func (w *World) Install(of *storage.Resource) {
	key := storage.Key{Resource: storage.CustomResourceDefs, Name: of.Name()}
	definition := map[string]any{
		"metadata": map[string]any{"name": of.Name()},
		"spec":     map[string]any{"versions": []any{map[string]any{"name": of.Version, "served": true}}},
	}
	_, err := w.Store.Create(key, definition)
	w.Must(err)
	w.Establish(of, true)
}

// Establish sets whether the CustomResourceDefinition of an optional kind is established.
func (w *World) Establish(of *storage.Resource, established bool) {
	status := map[bool]string{true: "True", false: "False"}[established]
	w.SetStatus(storage.Key{Resource: storage.CustomResourceDefs, Name: of.Name()},
		map[string]any{"conditions": []any{map[string]any{"type": "Established", "status": status}}})
}

// Uninstall deletes the CustomResourceDefinition of an optional kind, and all its objects.
func (w *World) Uninstall(of *storage.Resource) {
	keys := []storage.Key{{Resource: storage.CustomResourceDefs, Name: of.Name()}}
	for _, found := range w.Store.List(of, "") {
		keys = append(keys, found.Key)
	}
	for _, key := range keys {
		_, err := w.Store.Delete(key, storage.DeleteOptions{})
		w.Must(err)
	}
}

// SetStatus replaces the status of an object, like its controller.
func (w *World) SetStatus(key storage.Key, status map[string]any) {
	object := runtime.DeepCopyJSON(w.Store.Get(key).Object)
	object["status"] = status
	_, err := w.Store.Update(key, object, "status")
	w.Must(err)
}
