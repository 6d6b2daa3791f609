package main

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestReleasesOf(t *testing.T) {
	csv := func(name, phase string) string {
		return "apiVersion: v1\nkind: ClusterServiceVersion\nmetadata: {name: " + name + "}\nstatus: {phase: " + phase + "}\n---\n"
	}
	got := releasesOf(decode(t, csv("nginx-operator.v0.10.0", `""`)+csv("nginx-operator.v0.9.1", "Replacing")+
		csv("packageserver", succeeded)+csv("nginx-operator.vnext", succeeded)+csv("nginx-operator.v0.9.0", "Deleting")))
	want := []release{{"0.9.0", "Deleting"}, {"0.9.1", "Replacing"}, {"0.10.0", "new"}}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if last := (state{releases: got}).newest(); last != want[2] {
		t.Errorf("the newest is %v", last)
	}
}

func TestServedBy(t *testing.T) {
	crd := decode(t, `
apiVersion: v1
kind: CustomResourceDefinition
spec:
  versions:
  - {name: v1alpha1, served: true, storage: false}
  - {name: v1alpha2, served: true, storage: true}
  - {name: v1, served: false, storage: false}
`)[0]
	if got := servedBy(&crd); !slices.Equal(got, []string{"v1alpha1", "v1alpha2*"}) {
		t.Errorf("%v", got)
	}
	if got := servedBy(&unstructured.Unstructured{}); len(got) > 0 {
		t.Errorf("without a CRD: %v", got)
	}
}

func TestMigrationOf(t *testing.T) {
	const object = "apiVersion: v1\nkind: StorageVersionMigration\nmetadata: {name: one}\n"
	for name, test := range map[string]struct{ object, want string }{
		"new":     {object, "waiting"},
		"running": {object + `status: {conditions: [{type: Running, status: "True"}]}`, "Running"},
		"over":    {object + `status: {conditions: [{type: Running, status: "False"}, {type: Succeeded, status: "True"}]}`, "Succeeded"},
		"failed":  {object + `status: {conditions: [{type: Running, status: "False"}, {type: Failed, status: "True"}]}`, "Failed"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := migrationOf(&decode(t, test.object)[0]); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
	if got := migrationOf(&unstructured.Unstructured{}); got != "none" {
		t.Errorf("without one: %q", got)
	}
}

// What the operator says counts, not what OLM copied of it.
func TestUpgradeableOf(t *testing.T) {
	condition := decode(t, `
apiVersion: v2
kind: OperatorCondition
spec: {conditions: [{type: Other, status: "True"}, {type: Upgradeable, status: "False"}]}
status: {conditions: [{type: Upgradeable, status: "True"}]}
`)[0]
	if got := upgradeableOf(&condition); got != "False" {
		t.Errorf("%q", got)
	}
	if got := upgradeableOf(&unstructured.Unstructured{}); got != "unknown" {
		t.Errorf("without one: %q", got)
	}
}

func TestDone(t *testing.T) {
	good := func() state {
		return state{releases: []release{{"0.2.0", "Deleting"}, {"0.3.0", succeeded}}, stored: []string{finalAPI}, upgradeable: "True"}
	}
	if !good().done("0.3.0") {
		t.Error("not done")
	}
	for name, change := range map[string]func(*state){
		"another release":          func(s *state) { s.releases = []release{{"0.2.0", succeeded}} },
		"not installed":            func(s *state) { s.releases[1].phase = "Installing" },
		"objects in both versions": func(s *state) { s.stored = []string{firstAPI, finalAPI} },
		"objects in the old one":   func(s *state) { s.stored = []string{firstAPI} },
		"nothing known of them":    func(s *state) { s.stored = nil },
		"OLM blocked":              func(s *state) { s.upgradeable = "False" },
		"Upgradeable unknown":      func(s *state) { s.upgradeable = "unknown" },
		"nothing":                  func(s *state) { *s = state{} },
	} {
		if s := good(); func() bool { change(&s); return s.done("0.3.0") }() {
			t.Errorf("done with %s", name)
		}
	}
}

// A line has a cell for each column, below its name, and a mark where something has changed.
func TestRow(t *testing.T) {
	s := state{
		releases: []release{{"0.2.0", "Replacing"}, {"0.3.0", "InstallReady"}},
		served:   []string{"v1alpha1", "v1alpha2*"}, stored: []string{firstAPI, finalAPI}, migration: "Running", upgradeable: "False",
	}
	line := row(true, slices.Concat([]string{"12:03:04"}, s.cells(), []string{"123456/0", "12/0", "-"})...)
	const want = "  > 12:03:04  0.2.0 Replacing, 0.3.0 InstallReady  v1alpha1 v1alpha2*  v1alpha1 v1alpha2  " +
		"Running    False        123456/0  12/0      -\n"
	if line != want {
		t.Errorf("%q\nwant\n%q", line, want)
	}
	head := header()
	for name, cell := range map[string]string{
		"served": "v1alpha1 v1alpha2*", "migration": "Running", "upgradeable": "False", "page": "123456/0", "v1alpha2\n": "-\n",
	} {
		if strings.Index(head, name) != strings.Index(line, cell) {
			t.Errorf("%s is not below %s:\n%s%s", cell, strings.TrimSpace(name), head, line)
		}
	}
	if got := row(false, "12:03:05", "an error"); got != "    12:03:05  an error\n" {
		t.Errorf("%q", got)
	}
}

func TestCellsOfNothing(t *testing.T) {
	for i, cell := range (state{}).cells()[:3] {
		if cell != "none" {
			t.Errorf("cell %d is %q", i, cell)
		}
	}
}

// Each column that has to be explained is.
func TestLegend(t *testing.T) {
	for _, column := range columns[1:] {
		if column.meaning == "" || !strings.Contains(legend(), column.meaning) {
			t.Errorf("%s is not explained", column.name)
		}
	}
}
