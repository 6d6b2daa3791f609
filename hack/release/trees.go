package main

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// copyDelivery returns the commands that fill a new directory with everything that a cluster gets,
// except the operator's image.
func copyDelivery(from, dir string) [][]string {
	copied := []string{"cp", "-R"}
	for _, name := range []string{"config", "bundle", "bundle.Dockerfile", "catalog", "catalog.Dockerfile", "charts"} {
		copied = append(copied, filepath.Join(from, name))
	}
	return [][]string{{"rm", "-rf", dir}, {"mkdir", "-p", dir}, append(copied, dir+"/")}
}

// copyForExternal copies the delivery and the manifests of the examples for an external cluster.
func (p *project) copyForExternal() error {
	examples := externalDir + "/examples"
	commands := append(copyDelivery(".", externalDir), []string{"mkdir", examples}, []string{"cp", "-R", "examples/config", examples + "/"})
	err := execute(commands...)
	if err == nil {
		err = replace(publishedRegistry+"/", p.registry+"/", externalDir)
	}
	if err == nil && len(p.operandImages) > 0 {
		err = p.useOperandImages(externalDir)
	}
	if err == nil && p.digests {
		err = p.nameImagesByDigest(externalDir)
	}
	return err
}

// replace replaces text in all files below the directories.
func replace(old, text string, dirs ...string) error {
	root, err := os.OpenRoot(".")
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	for _, dir := range dirs {
		err = errors.Join(err, fs.WalkDir(root.FS(), dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return err
			}
			content, err := root.ReadFile(path)
			if err != nil {
				return err
			}
			return root.WriteFile(path, bytes.ReplaceAll(content, []byte(old), []byte(text)), 0o644)
		}))
	}
	return err
}

// printTree checks out an older release and prints its directory.
func (p *project) printTree(release string) error {
	release, err := p.resolve(release)
	if err != nil {
		return err
	}
	dir, _, err := p.tree(release)
	if err == nil {
		fmt.Println(dir)
	}
	return err
}

// resolve returns the version of an older release. "published" is the newest one, and "previous" the
// one that this release replaces in the catalog. They differ if the catalog skips published.
func (p *project) resolve(release string) (string, error) {
	if len(p.older) == 0 {
		return "", errors.New("the catalog holds no release before this one")
	}
	switch release {
	case "published":
		return p.older[len(p.older)-1], nil
	case "previous":
		text, err := template()
		if err != nil {
			return "", err
		}
		content, err := parseTemplate(text)
		if err != nil {
			return "", err
		}
		for _, channel := range content.Entries {
			entries, _ := channel["entries"].([]any)
			for _, entry := range entries {
				if field(entry, "name") == operatorName+".v"+p.version {
					return strings.TrimPrefix(field(entry, "replaces"), operatorName+".v"), nil
				}
			}
		}
		return "", fmt.Errorf("no channel of the catalog template has release %s", p.version)
	}
	return release, nil
}

// tree checks out the last commit of a release to its directory in dist/releases. If the cluster
// uses another registry, tree replaces the registry in the image names. The file .commit in the
// directory contains the origin: commit and registry. If the origin is unchanged, tree does
// nothing.
func (p *project) tree(release string) (dir, origin string, err error) {
	commit, err := lastCommit(release)
	if err != nil {
		return "", "", err
	}
	dir, origin = releasesDir+"/v"+release, commit+" "+p.registry+"\n"
	if have, _ := os.ReadFile(dir + "/.commit"); string(have) == origin {
		return dir, origin, nil
	}
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
		return "", "", err
	}
	archive, err := output("", "git", "archive", commit)
	if err == nil {
		_, err = output(archive, "tar", "-x", "-C", dir)
	}
	if err == nil && p.registry != publishedRegistry {
		err = replace(publishedRegistry+"/", p.registry+"/", dir+"/config", dir+"/bundle", dir+"/catalog")
	}
	if err == nil {
		fmt.Fprintf(os.Stderr, "release %s is commit %s\n", release, commit)
		err = os.WriteFile(dir+"/.commit", []byte(origin), 0o644)
	}
	return dir, origin, err
}

// lastCommit returns the last commit whose VERSION file contains the release.
func lastCommit(release string) (string, error) {
	list, err := output("", "git", "rev-list", "HEAD")
	if err != nil {
		return "", err
	}
	// For each commit, git prints a name and the content of the file, or that it is missing.
	commits := strings.Fields(list)
	text, err := output(strings.Join(commits, ":VERSION\n")+":VERSION\n", "git", "cat-file", "--batch=%(objectname)")
	if err != nil {
		return "", err
	}
	versions := strings.Fields(text)
	for i, commit := range commits {
		if 2*i+1 < len(versions) && versions[2*i+1] == release {
			return commit, nil
		}
	}
	return "", fmt.Errorf("the history of this clone has no commit with VERSION %s: fetch all of it (git fetch --unshallow)", release)
}

// makeNext creates dist/next: the code and bundle of this release under the next version. The new
// release is the head of each channel that contains this release.
func (p *project) makeNext() error {
	if p.digests {
		return errors.New("USE_IMAGE_DIGESTS=true is for what is published: the release after this one, which upgrade tests make, goes by tags")
	}
	text, err := template()
	if err == nil {
		text, err = withRelease(text, p.next, p.version)
	}
	if err == nil {
		err = execute(copyDelivery(p.delivery, nextDir)...)
	}
	if err == nil {
		err = replace(p.version, p.next, nextDir+"/config", nextDir+"/bundle", nextDir+"/charts")
	}
	if err == nil {
		err = renderCatalog(nextDir, p.image("bundle", p.next), p.next, text)
	}
	return err
}

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

func parseTemplate(template string) (content catalogContent, err error) {
	if err := yaml.UnmarshalStrict([]byte(template), &content); err != nil {
		return content, fmt.Errorf("failed to read the template of the catalog: %w", err)
	}
	return content, nil
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

// renderGraph renders the catalog of this release and the upgrade graph for the documentation.
func (p *project) renderGraph() error {
	text, err := template()
	if err == nil {
		err = renderCatalog(".", publishedRegistry+"/"+operatorName+"-bundle:v"+p.version, p.version, text)
	}
	if err != nil {
		return err
	}
	graph, err := output(text, "opm", "alpha", "render-template", "basic", "--output=mermaid")
	if err != nil {
		return err
	}
	return os.WriteFile("docs/reference/upgrade-graph.md", []byte("# Upgrade graph\n\nGenerated from `catalog/template.yaml`. "+
		"[Upgrades](../upgrades.md) says what it means.\n\n```mermaid\n"+graph+"```\n"), 0o644)
}

// renderCatalog renders the bundle in a directory and a catalog template to the catalog in the same
// directory. image is the name of the bundle's image. No registry is needed.
func renderCatalog(dir, image, release, template string) error {
	bundle, bundleErr := output("", "opm", "render", filepath.Join(dir, "bundle"), "--output=yaml",
		"--migrate-level=bundle-object-to-csv-metadata", "--alpha-image-ref-template="+image)
	catalog, err := output(template, "opm", "alpha", "render-template", "basic", "--output=yaml")
	if err := errors.Join(bundleErr, err); err != nil {
		return err
	}
	if err := errors.Join(
		os.WriteFile(filepath.Join(dir, bundlesDir, "v"+release+".yaml"), []byte(bundle), 0o644),
		os.WriteFile(filepath.Join(dir, "catalog", operatorName, "catalog.yaml"), []byte(catalog), 0o644),
	); err != nil {
		return err
	}
	return execute([]string{"opm", "validate", filepath.Join(dir, "catalog")})
}
