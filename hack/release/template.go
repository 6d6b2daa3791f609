package main

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// template returns the catalog template with the icon filled in.
func template() (string, error) {
	text, err := os.ReadFile("catalog/template.yaml")
	icon, iconErr := os.ReadFile("config/manifests/icon.svg")
	return strings.ReplaceAll(string(text), "@ICON@", base64.StdEncoding.EncodeToString(icon)), errors.Join(err, iconErr)
}

// catalogContent has the parts of a catalog template.
type catalogContent struct {
	Schema  string           `json:"schema"`
	Entries []map[string]any `json:"entries"`
}

// readTemplate reads the template of our own catalog.
func readTemplate() (catalogContent, error) {
	text, err := template()
	if err != nil {
		return catalogContent{}, fmt.Errorf("failed to read the template of the catalog: %w", err)
	}
	return parseTemplate(text)
}

func parseTemplate(template string) (content catalogContent, err error) {
	if err := yaml.UnmarshalStrict([]byte(template), &content); err != nil {
		return content, fmt.Errorf("failed to read the template of the catalog: %w", err)
	}
	return content, nil
}

// channelEntry is a release in a channel, in the catalog and in release-config.yaml.
type channelEntry struct {
	Name      string   `json:"name,omitempty"`
	Replaces  string   `json:"replaces,omitempty"`
	SkipRange string   `json:"skipRange,omitempty"`
	Skips     []string `json:"skips,omitempty"`
}

// entriesIn returns the entries of a channel.
func entriesIn(channel map[string]any) (out []channelEntry, err error) {
	text, err := yaml.Marshal(channel["entries"])
	if err == nil {
		err = yaml.UnmarshalStrict(text, &out)
	}
	if err != nil {
		return nil, fmt.Errorf("failed to read the channel %v: %w", channel["name"], err)
	}
	return out, nil
}

// entriesOf returns the entries of a release in all channels.
func (c catalogContent) entriesOf(release string) (out []channelEntry, err error) {
	for _, blob := range c.Entries {
		if blob["schema"] != "olm.channel" {
			continue
		}
		entries, err := entriesIn(blob)
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			if entry.Name == operatorName+".v"+release {
				out = append(out, entry)
			}
		}
	}
	return out, nil
}

// withRelease appends a release to each channel of a catalog template that has the release it
// replaces.
func withRelease(template, release, replaces string) (string, error) {
	content, err := parseTemplate(template)
	if err != nil {
		return "", err
	}

	predecessor := operatorName + ".v" + replaces
	appended := false
	for _, entry := range content.Entries {
		releases, _ := entry["entries"].([]any)
		if entry["schema"] != "olm.channel" || !slices.ContainsFunc(releases, func(r any) bool { return field(r, "name") == predecessor }) {
			continue
		}
		entry["entries"] = append(releases, map[string]string{"name": operatorName + ".v" + release, "replaces": predecessor})
		appended = true
	}
	if !appended {
		return "", fmt.Errorf("no channel of the catalog template has release %s", replaces)
	}
	out, err := yaml.Marshal(content)
	return string(out), err
}

// field returns a field of a channel entry, or "" if the entry does not have it.
func field(entry any, name string) string {
	fields, _ := entry.(map[string]any)
	text, _ := fields[name].(string)
	return text
}
