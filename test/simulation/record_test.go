//go:build record

package simulation

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/json"

	"github.com/example/nginx-operator/test/simulation/storage"
	"github.com/example/nginx-operator/test/simulation/world"
)

var recordFlag = flag.String("record", "", "the directory to which TestRecord writes")

// TestRecord writes the objects of the cluster in each state, for the upgrades from this release:
// go test -tags=record ./test/simulation -run TestRecord -record testdata/0.8.0
func TestRecord(t *testing.T) {
	edited := state{name: "edited while no operator ran", reach: func(h *history) {
		h.Stop()
		h.change(entrance("2"))
		h.Run(time.Minute)
	}}
	for _, in := range append(slices.Clone(states), edited) {
		t.Run(in.name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world.World) {
				h := &history{&story{World: w, t: t}}
				h.begin()
				in.reach(h)
				h.Stop()
				if err := os.WriteFile(filepath.Join(*recordFlag, fileOf(in.name)), h.record(), 0o600); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

// record returns the newest version of each object, in the order of the last writes, one in a line.
func (h *history) record() []byte {
	newest := map[storage.Key]*storage.Version{}
	for _, version := range h.Store.Since(0) {
		newest[version.Key] = version
	}
	var lines []string
	for _, version := range h.Store.Since(0) {
		if newest[version.Key] != version || version.Deleted || version.Resource == storage.Namespaces {
			continue
		}
		var object map[string]any
		h.Must(json.Unmarshal(version.Raw, &object))
		object["apiVersion"], object["kind"] = version.Resource.GroupVersion().String(), version.Resource.Kind
		raw, err := json.Marshal(object)
		h.Must(err)
		lines = append(lines, string(raw))
	}
	return []byte(`{"now":"` + time.Now().UTC().Format(time.RFC3339) + `","objects":[` + "\n" + strings.Join(lines, ",\n") + "\n]}\n")
}
