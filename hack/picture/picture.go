package main

import (
	"bytes"
	"fmt"
	"image/color"
	"strings"

	xfont "golang.org/x/image/font"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Sizes in points: of a cell of the grid, and of what is around the panels.
const (
	columns    = 24
	cellWidth  = 40
	cellHeight = 27
	margin     = 14
	gap        = 8
	heading    = 46
	footing    = 18
)

const caption = "Drawn by hack/picture from the dashboard's queries; not a screenshot of Grafana."

// sans is the typeface, in which gonum measures the text. It is not part of the picture: where it is missing, browsers take one of the same
// widths.
var sans = font.Font{Typeface: "Liberation", Variant: "Sans"}

// picture is what is drawn.
type picture struct {
	title    string
	selected []string
	window   window
	panels   []answered
}

// textStyle returns the style of a text that begins at a point, at its top.
func textStyle(size vg.Length, c color.Color, bold bool) draw.TextStyle {
	face := font.From(sans, size)
	if bold {
		face.Weight = xfont.WeightBold
	}
	return draw.TextStyle{Color: c, Font: face, XAlign: draw.XLeft, YAlign: draw.YTop, Handler: plot.DefaultTextHandler}
}

// drawPicture returns the picture as an SVG.
func drawPicture(p *picture) ([]byte, error) {
	rows := 0
	for _, panel := range p.panels {
		rows = max(rows, panel.GridPos.Y+panel.GridPos.H)
	}
	size := vg.Point{X: columns*cellWidth + 2*margin - gap, Y: vg.Length(rows)*cellHeight + heading + footing + 2*margin - gap}
	canvas := vgsvg.New(size.X, size.Y)
	all := draw.New(canvas)
	all.SetColor(paper)
	all.Fill(all.Path())
	left, top := vg.Length(margin), size.Y-margin
	all.FillText(textStyle(16, ink, true), vg.Point{X: left, Y: top}, p.title)
	all.FillText(textStyle(9, shaded, false), vg.Point{X: left, Y: top - 22}, strings.Join(append(p.selected, p.window.String()), "   ·   "))
	all.FillText(textStyle(8, shaded, false), vg.Point{X: left, Y: margin + 8}, caption)
	given := colors{}
	for i := range p.panels {
		at := p.panels[i].GridPos
		least := vg.Point{X: left + vg.Length(at.X*cellWidth), Y: top - heading - vg.Length((at.Y+at.H)*cellHeight) + gap}
		most := vg.Point{X: least.X + vg.Length(at.W*cellWidth) - gap, Y: least.Y + vg.Length(at.H*cellHeight) - gap}
		part := draw.Canvas{Canvas: canvas, Rectangle: vg.Rectangle{Min: least, Max: most}}
		if err := drawPanel(part, &p.panels[i], p.window, given); err != nil {
			return nil, fmt.Errorf("panel %q: %w", p.panels[i].Title, err)
		}
	}
	var out bytes.Buffer
	if _, err := canvas.WriteTo(&out); err != nil {
		return nil, fmt.Errorf("failed to write the picture: %w", err)
	}
	return portable(out.Bytes()), nil
}

// portable names typefaces of the same widths for who does not have gonum's, and leaves out what styles say anyway.
func portable(svg []byte) []byte {
	for _, replacement := range [][2]string{
		{"font-family:Liberation Sans;font-variant:normal;", "font-family:'Liberation Sans',Arial,Helvetica,sans-serif;"},
		{"font-weight:normal;", ""},
		{"font-style:normal;", ""},
	} {
		svg = bytes.ReplaceAll(svg, []byte(replacement[0]), []byte(replacement[1]))
	}
	return svg
}

// String says from when to when, in UTC.
func (w window) String() string {
	const day, minute = "2006-01-02", "15:04"
	until := minute
	if w.start.Format(day) != w.end.Format(day) {
		until = day + " " + minute
	}
	return w.start.Format(day+" "+minute) + " to " + w.end.Format(until) + " UTC"
}
