package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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

// resolve returns the version of an older release. "published" is the newest one, and "previous"
// the one that this release replaces in the catalog. They differ if the catalog skips published.
func (p *project) resolve(release string) (string, error) {
	if len(p.older) == 0 {
		return "", errors.New("the catalog holds no release before this one")
	}
	switch release {
	case "published":
		return p.older[len(p.older)-1], nil
	case "previous":
		content, err := readTemplate()
		if err != nil {
			return "", err
		}
		entries, err := content.entriesOf(p.version)
		if err != nil {
			return "", err
		}
		if len(entries) > 0 {
			return strings.TrimPrefix(entries[0].Replaces, operatorName+".v"), nil
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

	// From left to right, and with the names of bundles, the graph is twelve times as wide as a page.
	narrow := strings.NewReplacer("graph LR", "graph TD", `["`+operatorName+".v", `["`).Replace(graph)
	return os.WriteFile("docs/reference/upgrade-graph.md", []byte("# Upgrade graph\n\nGenerated from `catalog/template.yaml`. "+
		"[Upgrades](../upgrades.md) says what it means.\n\n```mermaid\n"+narrow+"```\n"), 0o644)
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
