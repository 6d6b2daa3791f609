//go:build bench

package bench

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// growth is the cost of the operator with a number of objects.
type growth struct {
	objects int
	// processor is the CPU time of both replicas for one more object, until they are idle. few is
	// the same among growthFew objects, measured in the same minutes.
	processor, few time.Duration
	// leader and standby are the resident memory of the replicas in MiB.
	leader, standby float64
}

// times returns the processor time as a multiple of that among few objects.
func (g growth) times() float64 { return g.processor.Seconds() / g.few.Seconds() }

// growthTable returns the results as a Markdown table and two plots.
func growthTable(points []growth, most, mostAfter float64, took time.Duration) string {
	var rows strings.Builder
	var sizes, times, leader, standby []string
	highest := 0
	for _, one := range points {
		highest = max(highest, int(one.leader))
		sizes, times = append(sizes, strconv.Itoa(one.objects)), append(times, fmt.Sprintf("%.2f", one.times()))
		leader, standby = append(leader, fmt.Sprintf("%.0f", one.leader)), append(standby, fmt.Sprintf("%.0f", one.standby))
		fmt.Fprintf(&rows, "| %d | %.1f ms | %.1f ms | %.2f | %.0f MiB | %.0f MiB |\n",
			one.objects, milliseconds(one.processor), milliseconds(one.few), one.times(), one.leader, one.standby)
	}
	plot := func(title, unit string, limit int, lines ...[]string) string {
		out := fmt.Sprintf("\n```mermaid\nxychart-beta\n  title %q\n  x-axis \"instances\" [%s]\n  y-axis %q 0 --> %d\n",
			title, strings.Join(sizes, ", "), unit, limit)
		for _, line := range lines {
			out += fmt.Sprintf("  line [%s]\n", strings.Join(line, ", "))
		}
		return out + "```\n"
	}
	return fmt.Sprintf("| instances | processor time of one more, both replicas | the same among %d at that time | times | "+
		"memory of the leader | memory of the standby |\n|---|---|---|---|---|---|\n", growthFew) +
		rows.String() + fmt.Sprintf("\nThe peak of the leader's memory was %.0f MiB. The standby created the children of a new instance %.1f s "+
		"after the end of the leader, and its memory rose to at most %.0f MiB.\n", most, took.Seconds(), mostAfter) +
		plot(fmt.Sprintf("Processor time of one more instance, as a multiple of that among %d", growthFew), "times", 2, times) +
		plot("Resident memory: leader (upper line) and standby", "MiB", (highest/10+1)*10, leader, standby)
}
