package command

import (
	"fmt"
	"text/tabwriter"

	"github.com/example/nginx-operator/cmd/kubectl-nginx/printer"
)

// Load has the requests and connections of a Pod, or of all Pods of an instance.
type Load struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Pod is the name of the Pod, or "" for a sum. Pods is then the number of Pods that answered.
	Pod  string `json:"pod,omitempty"`
	Pods int    `json:"pods,omitempty"`
	// RequestsPerSecond is the rate between two scrapes. It includes probes and scrapes.
	RequestsPerSecond float64 `json:"requestsPerSecond"`
	// Active is the number of connections. Waiting connections are idle.
	Active  int64 `json:"active"`
	Reading int64 `json:"reading"`
	Writing int64 `json:"writing"`
	Waiting int64 `json:"waiting"`
	// Dropped counts connections that nginx closed because worker_connections were used up.
	Dropped int64 `json:"dropped"`
}

// sums returns the sum over the Pods of each instance. Pods of an instance must be adjacent.
func sums(loads []Load) []Load {
	var sums []Load
	for _, load := range loads {
		if last := len(sums) - 1; last < 0 || sums[last].Namespace != load.Namespace || sums[last].Name != load.Name {
			sums = append(sums, Load{Namespace: load.Namespace, Name: load.Name})
		}

		sum := &sums[len(sums)-1]
		sum.Pods++
		sum.RequestsPerSecond += load.RequestsPerSecond
		sum.Active += load.Active
		sum.Reading += load.Reading
		sum.Writing += load.Writing
		sum.Waiting += load.Waiting
		sum.Dropped += load.Dropped
	}

	return sums
}

func (c *cli) printLoads(loads []Load, format *output) error {
	list := struct {
		Items []Load `json:"items"`
	}{append([]Load{}, loads...)}

	if printed, err := format.print(c.Out, list); printed || len(loads) == 0 {
		return err
	}

	table := tabwriter.NewWriter(c.Out, 0, 0, 3, ' ', 0)
	first := "NAMESPACE\tNAME\tPODS"
	if loads[0].Pod != "" {
		first = "POD"
	}

	_, _ = fmt.Fprintln(table, first+"\tREQUESTS/S\tACTIVE\tREADING\tWRITING\tWAITING\tDROPPED")
	for _, load := range loads {
		name := printer.Line(load.Pod)
		if name == "" {
			name = fmt.Sprintf("%s\t%s\t%d", printer.Line(load.Namespace), printer.Line(load.Name), load.Pods)
		}
		_, _ = fmt.Fprintf(table, "%s\t%.1f\t%d\t%d\t%d\t%d\t%d\n",
			name, load.RequestsPerSecond, load.Active, load.Reading, load.Writing, load.Waiting, load.Dropped)
	}

	return table.Flush()
}
