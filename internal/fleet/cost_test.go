package fleet

import (
	"fmt"
	"math/bits"
	"testing"

	"github.com/google/btree"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// TestCostOfReport verifies that the work of a report does not grow with the fleet: it counts the
// namespaces and instances that all reports of a rollout visit, with one instance in each of many
// namespaces, and with many instances in one namespace.
func TestCostOfReport(t *testing.T) {
	const instances = 100_000
	for name, namespaceOf := range map[string]func(int) string{
		"many namespaces": func(i int) string { return fmt.Sprintf("shop-%d", i) },
		"one namespace":   func(int) string { return "shop" },
	} {
		t.Run(name, func(t *testing.T) {
			g := New(Policy{MaxUnavailable: intstr.FromString("10%"), FailureThreshold: DefaultFailureThreshold})
			visits := 0
			byLoad := func(a, b load) bool { visits++; return a.before(b) }
			g.state.rolling, g.state.ready = btree.NewG(degree, byLoad), btree.NewG(degree, byLoad)
			g.order = order{btree.NewG(degree, func(a, b entry) bool { visits++; return a.before(b) })}

			var all, rolling []types.NamespacedName
			for i := range instances {
				all = append(all, types.NamespacedName{Namespace: namespaceOf(i), Name: fmt.Sprintf("web-%d", i)})
			}
			g.Listed(all)
			for _, object := range all {
				g.Report(object, Waiting, false)
			}
			for range instances {
				if len(rolling) == 0 {
					g.order.AscendRange(entry{place: Rolling}, entry{place: Rolling + 1}, func(e entry) bool {
						rolling = append(rolling, e.object)
						return true
					})
				}
				g.Report(rolling[0], Outside, false)
				rolling = rolling[1:]
			}
			if left := g.state.Sum; left != (Counts{}) || len(g.state.Namespaces) > 0 {
				t.Fatalf("not rolled: %+v", left)
			}

			const reports, searches = 2 * instances, 12
			if limit := searches * bits.Len(instances); visits/reports > limit {
				t.Errorf("a report visits %d namespaces and instances, want at most %d", visits/reports, limit)
			}
		})
	}
}
