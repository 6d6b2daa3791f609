package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// build renders all releases, each below its own path.
func build(ctx context.Context, base string) error {
	if err := errors.Join(os.RemoveAll(outputDir), os.RemoveAll(workDir)); err != nil {
		return fmt.Errorf("failed to remove the last site: %w", err)
	}
	releases, err := readReleases(ctx)
	if err != nil {
		return err
	}
	if err := writeAssets(ctx, filepath.Join(outputDir, "assets")); err != nil {
		return err
	}
	for _, r := range releases {
		dir := filepath.Join(workDir, r.version)
		if err := writeContent(dir, contentOf(r, releases, base)); err != nil {
			return err
		}
		if err := hugo(ctx, r, releases[0], base, dir); err != nil {
			return err
		}
		if err := errors.Join(writeImages(r), writeSearch(r)); err != nil {
			return err
		}
		fmt.Printf("%s: %d pages\n", r.version, len(r.pages))
	}
	return writeEntrance(base, releases[0])
}

// writeAssets writes the files that the pages of all releases share.
func writeAssets(ctx context.Context, dir string) error {
	if err := os.CopyFS(dir, os.DirFS("hack/site/assets")); err != nil {
		return fmt.Errorf("failed to copy the assets: %w", err)
	}
	for _, p := range sitePackages {
		files, err := p.read(ctx)
		if err != nil {
			return err
		}
		if err := writeFiles(dir, files); err != nil {
			return err
		}
	}
	return nil
}

// writeContent writes the input of Hugo: the pages with front matter, and data.
func writeContent(dir string, c content) error {
	files := map[string][]byte{}
	for name, value := range map[string]any{"pages": c.pages, "navigation": c.navigation} {
		text, err := json.MarshalIndent(value, "", " ")
		if err != nil {
			return fmt.Errorf("failed to write the data of the pages: %w", err)
		}
		files[filepath.Join("data", name+".json")] = text
	}
	for name, text := range c.files {
		files[filepath.Join("content", name)] = []byte(text)
	}
	return writeFiles(dir, files)
}

func writeFiles(dir string, files map[string][]byte) error {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return fmt.Errorf("failed to create a directory: %w", err)
		}
		if err := os.WriteFile(file, files[name], 0o644); err != nil {
			return fmt.Errorf("failed to write a file: %w", err)
		}
	}
	return nil
}

// hugo renders the content of a release. A warning is a failure.
func hugo(ctx context.Context, r, latest release, base, dir string) error {
	root, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("failed to find the root of the repository: %w", err)
	}
	cmd := exec.CommandContext(ctx, filepath.Join(root, "bin/hugo"), "--panicOnWarning", "--source", dir,
		"--config", filepath.Join(root, "hack/site/hugo.yaml"), "--layoutDir", filepath.Join(root, "hack/site/layouts"),
		"--baseURL", base+r.version+"/", "--destination", filepath.Join(root, outputDir, r.version))
	cmd.Env = append(os.Environ(), "HUGO_PARAMS_BASE="+base, "HUGO_PARAMS_RELEASE="+r.version, "HUGO_PARAMS_LATEST="+latest.version,
		"HUGO_PARAMS_REPOSITORY="+repository, fmt.Sprintf("HUGO_PARAMS_INDEX=%t", r.isIndex()))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("failed to render %s: %w\n%s", r.version, err, out)
	}
	return nil
}

// writeImages copies the images of a release.
func writeImages(r release) error {
	docs, files := os.DirFS(filepath.Join(r.tree, "docs")), map[string][]byte{}
	for _, name := range r.images {
		image, err := fs.ReadFile(docs, name)
		if err != nil {
			return fmt.Errorf("failed to read an image: %w", err)
		}
		files[name] = image
	}
	return writeFiles(filepath.Join(outputDir, r.version), files)
}

// writeSearch writes the sections of all pages of a release, which the search loads.
func writeSearch(r release) error {
	out := []section{}
	dir := filepath.Join(outputDir, r.version)
	for _, p := range r.pages {
		file, err := os.Open(filepath.Join(dir, p.path, "index.html"))
		if err != nil {
			return fmt.Errorf("failed to read a rendered page: %w", err)
		}
		found, err := sections(file, p)
		if err := errors.Join(err, file.Close()); err != nil {
			return err
		}
		out = append(out, found...)
	}
	text, err := json.Marshal(out)
	if err != nil {
		return fmt.Errorf("failed to write the search index: %w", err)
	}
	return writeFiles(dir, map[string][]byte{"search.json": text})
}

// writeEntrance writes the files at the root of the site: a redirection to the latest release, and
// the page that servers answer for unknown paths.
func writeEntrance(base string, latest release) error {
	missing, err := fs.ReadFile(os.DirFS(outputDir), latest.version+"/404.html")
	if err != nil {
		return fmt.Errorf("failed to read the page for unknown paths: %w", err)
	}
	target := base + latest.version + "/"
	page := strings.ReplaceAll(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>nginx-operator</title>
<meta http-equiv="refresh" content="0; url=URL">
<link rel="canonical" href="URL">
<h1>nginx-operator</h1>
<p><a href="URL">Documentation of the latest release</a></p>
`, "URL", target)
	return writeFiles(outputDir, map[string][]byte{"index.html": []byte(page), "404.html": missing})
}
