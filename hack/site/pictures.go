package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

const (
	// materialDir has what the end-to-end tests record for the pictures (make pictures).
	materialDir = "dist/pictures"
	// picturesDir has the pictures of the documentation.
	picturesDir = "docs/pictures"
	// maxPicture is the largest size of a picture in bytes.
	maxPicture = 200 << 10
)

// charts draws the panels of the dashboards. It is not part of the site.
var charts = npmPackage{
	name: "uplot", version: "1.6.32",
	integrity: "sha512-KIMVnG68zvu5XXUbC4LQEPnhwOxBuLyW1AHtpm6IKTXImkbLgkMy+jabjLgSLMasNuGGzQm/ep3tOkyTxpiQIw==",
	files:     map[string]string{"dist/uPlot.iife.min.js": "uplot.js", "dist/uPlot.min.css": "uplot.css"},
}

//go:embed pictures.html
var pictureTemplate string

// picture is a picture of the documentation. pictures.html draws it.
type picture struct {
	// Name is the name of the file without ".png".
	Name string `json:"name"`
	// Kind is dashboard, terminal, or diagram.
	Kind string `json:"kind"`
	// Material is the recorded dashboard, the output of a command, or the source of a diagram.
	Material json.RawMessage `json:"material"`
}

// readPictures returns all pictures with their material.
func readPictures() ([]picture, error) {
	var out []picture
	for _, name := range []string{"dashboard", "dashboard-instances"} {
		material, err := os.ReadFile(filepath.Join(materialDir, name+".json"))
		if err != nil {
			return nil, fmt.Errorf("failed to read the values of a dashboard; run make pictures: %w", err)
		}
		out = append(out, picture{name, "dashboard", material})
	}

	output, errOutput := os.ReadFile(filepath.Join(materialDir, "status.txt"))
	page, errPage := os.ReadFile("docs/how-it-works.md")
	if err := errors.Join(errOutput, errPage); err != nil {
		return nil, fmt.Errorf("failed to read the material of pictures; run make pictures: %w", err)
	}
	diagram := regexp.MustCompile("(?s)```mermaid\n(.*?)```").FindSubmatch(page)
	if diagram == nil {
		return nil, errors.New("docs/how-it-works.md has no diagram")
	}
	for _, drawn := range []struct{ name, kind, text string }{
		{"status", "terminal", string(output)}, {"change", "diagram", string(diagram[1])},
	} {
		material, err := json.Marshal(drawn.text)
		if err != nil {
			return nil, fmt.Errorf("failed to encode %s: %w", drawn.name, err)
		}
		out = append(out, picture{drawn.name, drawn.kind, material})
	}
	return out, nil
}

// pictures draws the pictures of the documentation from the recorded material.
func pictures(ctx context.Context) error {
	all, err := readPictures()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(picturesDir, 0o755); err != nil {
		return fmt.Errorf("failed to create the directory of pictures: %w", err)
	}
	b, err := startBrowser(ctx)
	if err != nil {
		return err
	}
	defer b.stop()
	for _, p := range all {
		drawn, err := b.draw(ctx, p)
		if err == nil && len(drawn) > maxPicture {
			err = fmt.Errorf("it has %d bytes, more than %d", len(drawn), maxPicture)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(picturesDir, p.Name+".png"), drawn, 0o644) //nolint:gosec // for all readers
		}
		if err != nil {
			return fmt.Errorf("failed to draw %s: %w", p.Name, err)
		}
		fmt.Printf("%s: %d KiB\n", p.Name, len(drawn)>>10)
	}
	return nil
}

// draw returns a picture as PNG.
func (b *browser) draw(ctx context.Context, p picture) ([]byte, error) {
	files := map[string][]byte{}
	for _, used := range append([]npmPackage{charts}, sitePackages...) {
		read, err := used.read(ctx)
		if err != nil {
			return nil, err
		}
		for name, text := range read {
			files["/"+name] = text
		}
	}
	material, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("failed to encode the material: %w", err)
	}
	files["/"] = []byte(strings.Replace(pictureTemplate, "MATERIAL", string(material), 1))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		text, found := files[request.URL.Path]
		if !found {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		if strings.HasSuffix(request.URL.Path, ".css") {
			w.Header().Set("Content-Type", "text/css")
		}
		_, _ = w.Write(text)
	}))
	defer server.Close()

	b.takeErrors()
	if err := errors.Join(b.set(windows[0]), b.do(chromedp.Navigate(server.URL))); err != nil {
		return nil, err
	}
	const done = `new Promise((resolve, reject) => { const end = Date.now() + 60000, poll = () => window.failure || Date.now() > end ?
		reject(window.failure ?? new Error("it is not drawn after a minute")) : window.done ? resolve(true) : setTimeout(poll, 20); poll(); })`
	_, err = value(b, chromedp.Evaluate[bool](done, chromedp.EvalAwaitPromise))
	if problems := b.takeErrors(); err != nil || len(problems) > 0 {
		return nil, fmt.Errorf("%w; %s", err, strings.Join(problems, "; "))
	}
	clip, err := value(b, chromedp.Evaluate[cdppage.Viewport](`document.getElementById("picture").getBoundingClientRect().toJSON()`))
	if err != nil {
		return nil, fmt.Errorf("failed to measure the picture: %w", err)
	}
	clip.Scale = 1
	ctx, cancel := context.WithTimeout(b.ctx, pageTimeout)
	defer cancel()
	beyond := true
	shot, err := chromedp.Call(ctx, cdppage.CaptureScreenshot, cdppage.CaptureScreenshotParams{Clip: &clip, CaptureBeyondViewport: &beyond})
	if err != nil {
		return nil, fmt.Errorf("failed to take the picture: %w", err)
	}
	return shot.Data, nil
}
