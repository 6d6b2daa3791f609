//go:build site

package main

import (
	"bytes"
	"encoding/json"
	"image/png"
	"testing"
)

// TestPictures verifies that each kind of picture is drawn, and that the colors of a terminal that
// nobody has defined are an error.
func TestPictures(t *testing.T) {
	t.Chdir("../..") // the packages of npm are in dist
	b, err := startBrowser(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer b.stop()
	for name, test := range map[string]struct {
		kind, material string
		width          int
	}{
		"dashboard": {"dashboard", `{"title":"A","panels":[
			{"title":"B","type":"row","gridPos":{"x":0,"y":0,"w":24,"h":1},"series":[]},
			{"title":"C","type":"timeseries","unit":"s","gridPos":{"x":0,"y":1,"w":8,"h":7},"series":[{"name":"d","points":[[1,2],[3,4]]},
			{"name":"e","points":null}]},
			{"title":"D","type":"timeseries","unit":"s","gridPos":{"x":8,"y":1,"w":8,"h":7},"series":[]}]}`, 1180},
		"terminal":      {"terminal", `"Ready  \u001b[32mTrue\u001b[0m\nDegraded"`, 100},
		"diagram":       {"diagram", `"flowchart TD\n  a --> b"`, 50},
		"unknown color": {"terminal", `"\u001b[48mTrue"`, 0},
		"no diagram":    {"diagram", `"nonsense"`, 0},
	} {
		drawn, err := b.draw(t.Context(), picture{name, test.kind, json.RawMessage(test.material)})
		if test.width == 0 {
			if err == nil {
				t.Errorf("%s: no error", name)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		config, err := png.DecodeConfig(bytes.NewReader(drawn))
		if err != nil || config.Width < test.width || config.Height < 20 {
			t.Errorf("%s: %d by %d pixels, %v", name, config.Width, config.Height, err)
		}
	}
}
