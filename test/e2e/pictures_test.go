package e2e

// The material of pictures of the documentation. `make pictures` runs the tests that call these
// functions, and draws it. PICTURES is the directory for it. Without it, nothing is recorded.

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/example/nginx-operator/test/harness"
	"github.com/example/nginx-operator/test/monitoring"
)

// recordedPanel is a panel of a dashboard with its values.
type recordedPanel struct {
	Title   string             `json:"title"`
	Type    string             `json:"type"`
	Unit    string             `json:"unit"`
	GridPos monitoring.GridPos `json:"gridPos"`
	Series  []recordedSeries   `json:"series"`
}

// recordedSeries has points of a time in seconds and a value.
type recordedSeries struct {
	Name   string       `json:"name"`
	Points [][2]float64 `json:"points"`
}

// recordDashboard records the values that a dashboard shows since a time.
func recordDashboard(t *testing.T, prometheus *harness.Prometheus, dashboard *monitoring.Dashboard, file string, since time.Time) {
	t.Helper()
	directory := os.Getenv("PICTURES")
	if directory == "" {
		return
	}
	panels := make([]recordedPanel, len(dashboard.Panels))
	for i := range dashboard.Panels {
		of := &dashboard.Panels[i]
		panels[i] = recordedPanel{of.Title, of.Type, of.FieldConfig.Defaults.Unit, of.GridPos, []recordedSeries{}}
		for at, query := range of.Queries() {
			found := harness.Must1(prometheus.QueryRange(t.Context(), query, since, time.Now(), 2*time.Second))(t)
			for _, series := range found {
				panels[i].Series = append(panels[i].Series, recordedSeries{legendOf(of.Targets[at].LegendFormat, series.Labels), series.Points})
			}
		}
	}
	material := map[string]any{"title": dashboard.Title, "panels": panels}
	must(t, os.WriteFile(filepath.Join(directory, file), harness.Must1(json.Marshal(material))(t), 0o600))
}

var legendLabel = regexp.MustCompile(`{{\s*(\w+)\s*}}`)

// legendOf returns the name of a series in the legend of a panel.
func legendOf(format string, labels map[string]string) string {
	return legendLabel.ReplaceAllStringFunc(format, func(label string) string { return labels[strings.Trim(label, "{} ")] })
}

// recordStatus records the output of kubectl nginx status on a terminal.
func recordStatus(t *testing.T, namespace, name string) {
	t.Helper()
	directory := os.Getenv("PICTURES")
	if directory == "" {
		return
	}
	run := "kubectl nginx status " + name + " -n " + namespace
	output := harness.Must1(command(t.Context(), "script", "--quiet", "--return", "--command", run, "/dev/null"))(t)
	text := "$ " + run + "\n" + strings.ReplaceAll(output, "\r\n", "\n")
	must(t, os.WriteFile(filepath.Join(directory, "status.txt"), []byte(text), 0o600))
}
