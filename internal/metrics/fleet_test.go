package metrics

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// TestFleet verifies that each state has a value from the start, and that new values replace the
// earlier ones.
func TestFleet(t *testing.T) {
	registry := prometheus.NewRegistry()
	fleet := NewFleet(registry)
	fleet.Instances(7, 2, 3, 1)
	for _, want := range [][4]int{{7, 2, 3, 1}, {}} {
		fleet.Instances(want[0], want[1], want[2], want[3])
		var text strings.Builder
		for i, state := range []string{"waiting", "rolling", "overdue", "failed"} {
			fmt.Fprintf(&text, "nginx_operator_fleet_rollout_instances{state=%q} %d\n", state, want[i])
		}
		header := "# HELP nginx_operator_fleet_rollout_instances Instances that this release changes: waiting for a slot (waiting), " +
			"with a slot (rolling), without a slot because they rolled for too long (overdue), and with a failed rollout (failed). " +
			"Only the leader reports values above 0.\n# TYPE nginx_operator_fleet_rollout_instances gauge\n"
		if err := testutil.GatherAndCompare(registry, strings.NewReader(header+text.String())); err != nil {
			t.Error(err)
		}
	}
}
