package metrics

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// Each state has a value from the start, and what was counted before is gone.
func TestFleet(t *testing.T) {
	registry := prometheus.NewRegistry()
	fleet := NewFleet(registry)
	fleet.Instances(7, 2, 1)
	for _, want := range [][3]int{{7, 2, 1}, {0, 0, 0}} {
		fleet.Instances(want[0], want[1], want[2])
		var text strings.Builder
		for i, state := range []string{"waiting", "rolling", "failed"} {
			fmt.Fprintf(&text, "nginx_operator_fleet_rollout_instances{state=%q} %d\n", state, want[i])
		}
		header := "# HELP nginx_operator_fleet_rollout_instances Instances of which this release makes something else: those that wait for " +
			"their turn (waiting), those that have begun and are not Ready yet (rolling), and those whose rollout failed (failed), which stop " +
			"the others. Only the leader has it above 0.\n# TYPE nginx_operator_fleet_rollout_instances gauge\n"
		if err := testutil.GatherAndCompare(registry, strings.NewReader(header+text.String())); err != nil {
			t.Error(err)
		}
	}
}
