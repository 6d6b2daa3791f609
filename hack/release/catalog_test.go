package main

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// TestChannels checks the heads, the default channel, and the deprecations. The default channel
// does not contain the vulnerable releases 0.4.0 and 0.5.0, and their users upgrade directly to
// 0.5.1. 0.7.1 skips 0.7.0. File-based catalogs have no channel aliases, so alpha, the former name
// of candidate, needs the same entries.
func TestChannels(t *testing.T) {
	inDirectory(t, "../..")
	p, err := load()
	must(t, err)
	text, err := template()
	must(t, err)
	type release struct {
		Name, Replaces, SkipRange string
		Skips                     []string
		Reference                 struct{ Schema, Name string }
	}
	var content struct {
		Entries []struct {
			Schema, Name, DefaultChannel string
			Entries                      []release
		}
	}
	must(t, yaml.Unmarshal([]byte(text), &content))
	channels := map[string][]release{}
	var deprecated []string
	for _, entry := range content.Entries {
		switch entry.Schema {
		case "olm.channel":
			channels[entry.Name] = entry.Entries
		case "olm.deprecations":
			for _, one := range entry.Entries {
				deprecated = append(deprecated, one.Reference.Schema+" "+one.Reference.Name)
			}
		case "olm.package":
			if entry.DefaultChannel != "stable" {
				t.Errorf("the default channel is %s", entry.DefaultChannel)
			}
		}
	}

	if diff := cmp.Diff(channels["candidate"], channels["alpha"]); diff != "" {
		t.Errorf("alpha differs from candidate: %s", diff)
	}
	vulnerable := []string{"nginx-operator.v0.4.0", "nginx-operator.v0.5.0"}
	fixes := map[string]release{
		"nginx-operator.v0.5.1": {Replaces: "nginx-operator.v0.3.1", SkipRange: ">=0.3.1 <0.5.1", Skips: vulnerable},
		"nginx-operator.v0.7.1": {Replaces: "nginx-operator.v0.6.0", SkipRange: ">=0.6.0 <0.7.1", Skips: []string{"nginx-operator.v0.7.0"}},
	}
	for _, name := range []string{"candidate", "stable"} {
		releases := channels[name]
		if want := operatorName + ".v" + p.version; len(releases) == 0 || releases[len(releases)-1].Name != want {
			t.Errorf("the head of %s is not %s: %v", name, want, releases)
		}
		found := 0
		for _, one := range releases {
			want, fixed := fixes[one.Name]
			if want.Name = one.Name; fixed {
				found++
			}
			if name == "stable" && slices.Contains(vulnerable, one.Name) || fixed && !cmp.Equal(want, one) {
				t.Errorf("%s has %+v", name, one)
			}
		}
		if found != len(fixes) {
			t.Errorf("%s has %d of %d releases that skip others", name, found, len(fixes))
		}
	}
	want := []string{"olm.channel alpha"}
	for _, release := range p.older {
		want = append(want, "olm.bundle "+operatorName+".v"+release)
	}
	if diff := cmp.Diff(want, deprecated); diff != "" {
		t.Errorf("deprecated: %s", diff)
	}
}
