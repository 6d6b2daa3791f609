package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// catalogTemplate contains the fields of catalog/template.yaml that the tests read.
type catalogTemplate struct {
	Entries []struct {
		Schema, Name, DefaultChannel string
		Entries                      []struct {
			Name, Replaces, SkipRange string
			Skips                     []string
			Reference                 struct{ Schema, Name string }
			Message                   string
		}
	}
}

// TestChannels checks the heads, the default channel, and the deprecations. File-based catalogs
// have no channel aliases, so alpha, the former name of candidate, needs the same entries.
func TestChannels(t *testing.T) {
	p, content := readCatalogTemplate(t)
	channels := map[string]any{}
	heads := map[string]string{}
	var deprecated []string
	for _, entry := range content.Entries {
		switch entry.Schema {
		case "olm.channel":
			channels[entry.Name] = entry.Entries
			heads[entry.Name] = entry.Entries[len(entry.Entries)-1].Name
		case "olm.deprecations":
			for _, reference := range entry.Entries {
				deprecated = append(deprecated, reference.Reference.Schema+" "+reference.Reference.Name)
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
	for _, name := range []string{"candidate", "alpha", "stable"} {
		if want := operatorName + ".v" + p.version; heads[name] != want {
			t.Errorf("the head of %s is %q, not %s", name, heads[name], want)
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

// TestStableSkipsVulnerableReleases checks that the default channel does not contain 0.4.0 and
// 0.5.0, and that users of these releases upgrade directly to 0.5.1.
func TestStableSkipsVulnerableReleases(t *testing.T) {
	_, content := readCatalogTemplate(t)
	found := false
	for _, channel := range content.Entries {
		if channel.Schema != "olm.channel" {
			continue
		}
		for _, entry := range channel.Entries {
			if channel.Name == "stable" && (strings.HasSuffix(entry.Name, "v0.4.0") || strings.HasSuffix(entry.Name, "v0.5.0")) {
				t.Errorf("stable has %s", entry.Name)
			}
			if entry.Name != "nginx-operator.v0.5.1" {
				continue
			}
			found = true
			skips := []string{"nginx-operator.v0.4.0", "nginx-operator.v0.5.0"}
			if entry.Replaces != "nginx-operator.v0.3.1" || !slices.Equal(entry.Skips, skips) {
				t.Errorf("in %s 0.5.1 replaces %s and skips %v", channel.Name, entry.Replaces, entry.Skips)
			}
		}
	}
	if !found {
		t.Error("no channel has 0.5.1")
	}
}

func readCatalogTemplate(t *testing.T) (*project, catalogTemplate) {
	t.Helper()
	inDirectory(t, "../..")
	p, err := load()
	must(t, err)
	text, err := template()
	must(t, err)
	var content catalogTemplate
	must(t, yaml.Unmarshal([]byte(text), &content))
	return p, content
}
