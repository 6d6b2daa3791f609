package main

import (
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

const (
	communityFile     = "config/manifests/community-operators.yaml"
	communityTemplate = "basic.yaml"
	communityChannel  = "stable"
	submissionDir     = "dist/submission"
)

// communityRepository is a repository of community-operators.
type communityRepository struct {
	Name string
	// Catalogs are the directories of its catalogs that get the operator.
	Catalogs []string
	// Published are the releases that it has, oldest first.
	Published []publishedBundle
}

// publishedBundle is a release in a repository. Its pipeline rebuilds the bundle, and reports the
// image.
type publishedBundle struct{ Version, Image string }

// releaseConfig is what the pipeline of a repository adds to a template when it has merged a
// bundle.
type releaseConfig struct {
	CatalogTemplates []releaseTemplate `json:"catalog_templates"`
}

type releaseTemplate struct {
	TemplateName   string   `json:"template_name"`
	Channels       []string `json:"channels"`
	DefaultChannel string   `json:"defaultChannel"`
	channelEntry
}

// catalogMapping says which catalogs a template renders.
type catalogMapping struct {
	TemplateName string   `json:"template_name"`
	CatalogNames []string `json:"catalog_names"`
	Type         string   `json:"type"`
}

func readCommunity() (repositories []communityRepository, err error) {
	err = readYAML(communityFile, &repositories)
	return repositories, err
}

// readYAML reads a file, which must have no unknown fields.
func readYAML(file string, into any) error {
	text, err := os.ReadFile(file)
	if err == nil {
		err = yaml.UnmarshalStrict(text, into)
	}
	if err != nil {
		return fmt.Errorf("failed to read %s: %w", file, err)
	}
	return nil
}

// communityCatalog returns the template of a repository's catalogs with this release, and this
// release's entry in the channel.
//
// The graph is that of our own catalog, without the releases that the repository does not have. The
// first release there replaces none. The template has no olm.bundle of this release: the pipeline
// adds it, because it builds the image.
func (p *project) communityCatalog(repository communityRepository, ours catalogContent) (catalogContent, channelEntry, error) {
	present := map[string]bool{operatorName + ".v" + p.version: true}
	for _, bundle := range repository.Published {
		present[operatorName+".v"+bundle.Version] = true
	}
	out, own := catalogContent{Schema: ours.Schema}, channelEntry{}
	for _, blob := range ours.Entries {
		switch {
		case blob["schema"] == "olm.package":
			out.Entries = append(out.Entries, blob)
		case blob["schema"] == "olm.channel" && blob["name"] == communityChannel:
			entries, err := channelEntries(blob, present)
			if err != nil {
				return out, own, err
			}
			channel := maps.Clone(blob)
			channel["entries"] = entries
			out.Entries, own = append(out.Entries, channel), entries[len(entries)-1]
		case blob["schema"] == "olm.deprecations":
			if deprecations := deprecationsOf(blob, present); deprecations != nil {
				out.Entries = append(out.Entries, deprecations)
			}
		}
	}
	if own.Name != operatorName+".v"+p.version {
		return out, own, fmt.Errorf("the head of the channel %s is %q, and not release %s", communityChannel, own.Name, p.version)
	}
	for _, bundle := range repository.Published {
		out.Entries = append(out.Entries, map[string]any{"schema": "olm.bundle", "image": bundle.Image})
	}
	return out, own, nil
}

// channelEntries returns the entries of a channel whose releases are present. Only the first one
// may replace a release that is not.
func channelEntries(channel map[string]any, present map[string]bool) ([]channelEntry, error) {
	all, err := entriesIn(channel)
	if err != nil {
		return nil, err
	}
	var out []channelEntry
	for _, entry := range all {
		if !present[entry.Name] {
			continue
		}
		if !present[entry.Replaces] {
			if len(out) > 0 {
				return nil, fmt.Errorf("%s replaces %s, which is not in %s: submit that release first", entry.Name, entry.Replaces, communityFile)
			}
			entry.Replaces = ""
		}
		out = append(out, entry)
	}
	if len(out) != len(present) {
		return nil, fmt.Errorf("the channel %s has %d of the %d releases in %s", communityChannel, len(out), len(present), communityFile)
	}
	return out, nil
}

// deprecationsOf returns the deprecations of the releases that are present, or nil if there are
// none.
func deprecationsOf(blob map[string]any, present map[string]bool) map[string]any {
	all, _ := blob["entries"].([]any)
	kept := slices.DeleteFunc(slices.Clone(all), func(entry any) bool {
		fields, _ := entry.(map[string]any)
		return field(fields["reference"], "schema") != "olm.bundle" || !present[field(fields["reference"], "name")]
	})
	if len(kept) == 0 {
		return nil
	}
	out := maps.Clone(blob)
	out["entries"] = kept
	return out
}

// communityFiles returns the files of a submission other than the bundle: ci.yaml with the mapping
// of the catalogs, the template, and release-config.yaml.
func (p *project) communityFiles(repository communityRepository, root string, ours catalogContent, ci map[string]any) ([]packed, error) {
	template, own, err := p.communityCatalog(repository, ours)
	if err != nil {
		return nil, fmt.Errorf("failed to make the catalog of %s: %w", repository.Name, err)
	}
	ci = maps.Clone(ci)
	ci["fbc"] = map[string]any{"enabled": true, "catalog_mapping": []catalogMapping{
		{TemplateName: communityTemplate, CatalogNames: repository.Catalogs, Type: template.Schema},
	}}
	own.Name = ""
	config := releaseConfig{CatalogTemplates: []releaseTemplate{{
		TemplateName: communityTemplate, Channels: []string{communityChannel}, DefaultChannel: communityChannel, channelEntry: own,
	}}}
	var out []packed
	for name, content := range map[string]any{
		"ci.yaml": ci, "catalog-templates/" + communityTemplate: template, p.version + "/release-config.yaml": config,
	} {
		text, err := yaml.Marshal(content)
		if err != nil {
			return nil, fmt.Errorf("failed to write %s: %w", name, err)
		}
		out = append(out, packed{path.Join(root, name), 0o644, append([]byte("---\n"), text...)})
	}
	slices.SortFunc(out, func(a, b packed) int { return strings.Compare(a.name, b.name) })
	return out, nil
}

// validateSubmission renders the catalog that each repository has after the submission, with the
// bundles of our own catalog, because the repository's images do not exist yet. opm validates it.
func (p *project) validateSubmission() error {
	repositories, err := readCommunity()
	if err != nil {
		return err
	}
	ours, err := readTemplate()
	if err != nil {
		return err
	}
	for _, repository := range repositories {
		published := repository.Published
		repository.Published = append(slices.Clone(published), publishedBundle{Version: p.version})
		content, _, err := p.communityCatalog(repository, ours)
		if err != nil {
			return err
		}
		content.Entries = slices.DeleteFunc(content.Entries, func(blob map[string]any) bool { return blob["schema"] == "olm.bundle" })
		text, err := yaml.Marshal(content)
		if err != nil {
			return fmt.Errorf("failed to write the template of %s: %w", repository.Name, err)
		}
		catalog, err := output(string(text), "opm", "alpha", "render-template", "basic", "--output=yaml")
		if err != nil {
			return err
		}
		files := map[string][]byte{"catalog.yaml": []byte(catalog)}
		for _, bundle := range repository.Published {
			name := "v" + bundle.Version + ".yaml"
			if files[name], err = os.ReadFile(filepath.Join(bundlesDir, name)); err != nil {
				return fmt.Errorf("failed to read a bundle of %s: %w", repository.Name, err)
			}
		}
		dir := filepath.Join(submissionDir, repository.Name)
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("failed to remove the earlier catalog: %w", err)
		}
		if err := writeFiles(dir, files); err != nil {
			return err
		}
		if err := execute([]string{"opm", "validate", dir}); err != nil {
			return err
		}
	}
	return nil
}
