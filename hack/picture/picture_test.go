package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/plot/vg"
)

const instances = "../../config/monitoring/dashboard-instances.json"

// drawn draws a dashboard of the data of the tests, and returns the SVG.
func drawn(t *testing.T, url, dashboard string, args ...string) []byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "picture.svg")
	all := append([]string{"-prometheus", url, "-dashboard", dashboard, "-out", out, "-end", dataEnd.Format("2006-01-02T15:04:05Z")}, args...)
	if err := run(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	return must[[]byte](t)(os.ReadFile(out)) //nolint:gosec // a file of this test
}

// The dashboards of config/monitoring, drawn from a real Prometheus: small, whole, the same twice, and no text on another.
func TestPicture(t *testing.T) {
	url := startPrometheus(t)
	for name, test := range map[string]struct {
		dashboard string
		args      []string
		// texts are some that are shown, missing some that are not.
		texts, missing []string
	}{
		"fleet": {
			dashboard: instances,
			texts: []string{
				"namespace: all   ·   instance: all   ·   2026-01-31 11:00 to 12:00 UTC", "requests/s", "shop/web", "intranet/api",
				"answer", "do not answer", "RolledBack", "ImagePullFailed", "Ready=True", "11:30",
			},
			missing: []string{"No data"},
		},
		"instance": {
			dashboard: instances,
			args:      []string{"-var", "namespace=shop", "-var", "instance=web", "-range", "10m"},
			texts:     []string{"namespace: shop   ·   instance: web   ·   2026-01-31 11:50 to 12:00 UTC", "shop/web", "11:52"},
			missing:   []string{"No data", "intranet/api"},
		},
		"nothing": {
			dashboard: instances,
			args:      []string{"-var", "namespace=none"},
			texts:     []string{"No data", "namespace: none   ·   instance: all   ·   2026-01-31 11:00 to 12:00 UTC"},
			missing:   []string{"shop/web"},
		},
		"operator": {
			dashboard: "../../config/monitoring/dashboard.json",
			texts:     []string{"Instances", "Operator", "No data", "Ready=True"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			svg := drawn(t, url, test.dashboard, test.args...)
			if again := drawn(t, url, test.dashboard, test.args...); !bytes.Equal(svg, again) {
				t.Error("the same data give another picture")
			}
			if len(svg) > 150<<10 {
				t.Errorf("the picture has %d bytes", len(svg))
			}
			texts := textsOf(t, svg)
			for _, panel := range must[*dashboard](t)(readDashboard(test.dashboard)).Panels {
				requireText(t, texts, panel.Title)
			}
			for _, text := range append(test.texts, caption) {
				requireText(t, texts, text)
			}
			for _, text := range test.missing {
				if slices.ContainsFunc(texts, func(b textBox) bool { return b.text == text }) {
					t.Errorf("the picture says %q", text)
				}
			}
			requireNoOverlap(t, texts)
			if bytes.Contains(svg, []byte("NaN")) || bytes.Contains(svg, []byte("font-family:Liberation")) {
				t.Error("the picture has a coordinate that is no number, or a typeface without another in its place")
			}
		})
	}
}

// What cannot be drawn is an error that names it, and no picture is written.
func TestPictureFails(t *testing.T) {
	url := startPrometheus(t)
	dir := t.TempDir()
	broken := filepath.Join(dir, "broken.json")
	text := `{"title": "Broken", "panels": [{"title": "Rates", "type": "timeseries", "targets": [{"expr": "rate("}]}]}`
	if err := os.WriteFile(broken, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		`panel "Rates"`:               {"-prometheus", url, "-dashboard", broken},
		"connection refused":          {"-prometheus", "http://127.0.0.1:1", "-dashboard", instances},
		"has no variable cluster":     {"-prometheus", url, "-dashboard", instances, "-var", "cluster=a"},
		"no such file":                {"-prometheus", url, "-dashboard", filepath.Join(dir, "none.json")},
		"are required":                {"-prometheus", url},
		"-range is at least 1m":       {"-prometheus", url, "-dashboard", instances, "-range", "1s"},
		"not a valid duration string": {"-prometheus", url, "-dashboard", instances, "-range", "soon"},
	} {
		out := filepath.Join(dir, "picture.svg")
		if err := run(t.Context(), append(args, "-out", out)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: the error is %v, want %q", args, err, want)
		}
		if _, err := os.Stat(out); err == nil {
			t.Errorf("%q wrote a picture", args)
		}
	}
}

// textBox is a text of a picture and the place that it takes.
type textBox struct {
	text                      string
	left, right, foot, ascent float64
}

// textsOf returns the texts of an SVG, which has to be well-formed.
func textsOf(t *testing.T, svg []byte) []textBox {
	t.Helper()
	var out []textBox
	decoder := xml.NewDecoder(bytes.NewReader(svg))
	inText := false
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatal(err)
		}
		switch element := token.(type) {
		case xml.StartElement:
			if inText = element.Name.Local == "text"; inText {
				out = append(out, boxOf(t, element.Attr))
			}
		case xml.CharData:
			if inText {
				out[len(out)-1].text += string(element)
			}
		case xml.EndElement:
			if inText {
				box := &out[len(out)-1]
				style := textStyle(vg.Length(box.ascent), ink, box.right > 0)
				box.right = box.left + style.Width(box.text).Points()
			}
			inText = false
		}
	}
}

// boxOf reads where a text begins, its size as the ascent, and as a right edge above zero that it is bold.
func boxOf(t *testing.T, attributes []xml.Attr) textBox {
	t.Helper()
	var out textBox
	number := func(text string) float64 { return must[float64](t)(strconv.ParseFloat(text, 64)) }
	for _, attribute := range attributes {
		switch attribute.Name.Local {
		case "x":
			out.left = number(attribute.Value)
		case "y":
			out.foot = number(attribute.Value)
		case "style":
			_, size, _ := strings.Cut(attribute.Value, "font-size:")
			size, _, _ = strings.Cut(size, "px")
			out.ascent = number(size)
			if strings.Contains(attribute.Value, "font-weight:bold") {
				out.right = math.Inf(1)
			}
		}
	}
	return out
}

func requireText(t *testing.T, texts []textBox, want string) {
	t.Helper()
	if !slices.ContainsFunc(texts, func(b textBox) bool { return b.text == want }) {
		t.Errorf("the picture does not say %q", want)
	}
}

// requireNoOverlap requires each text to have its place for itself.
func requireNoOverlap(t *testing.T, texts []textBox) {
	t.Helper()
	for i, a := range texts {
		for _, b := range texts[i+1:] {
			// Four fifths of the size are what capitals take above the foot.
			above, below := max(a.foot-0.8*a.ascent, b.foot-0.8*b.ascent), min(a.foot, b.foot)
			if above < below && max(a.left, b.left) < min(a.right, b.right) {
				t.Errorf("%q at %.0f,%.0f and %q at %.0f,%.0f overlap", a.text, a.left, a.foot, b.text, b.left, b.foot)
			}
		}
	}
}
