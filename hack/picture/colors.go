package main

import (
	"image/color"
	"slices"
)

func rgb(hex uint32) color.Color {
	return color.NRGBA{R: uint8(hex >> 16), G: uint8(hex >> 8), B: uint8(hex), A: 0xff} //nolint:gosec // the bytes of the number
}

// The colours of what is no line.
var (
	paper  = rgb(0xf4f5f7)
	white  = rgb(0xffffff)
	frame  = rgb(0xdcdfe4)
	grid   = rgb(0xebedf0)
	ink    = rgb(0x1f2329)
	shaded = rgb(0x646b75)
)

// named are the colours to which dashboards give a meaning, by Grafana's names.
var named = map[string]color.Color{
	"green": rgb(0x37872d), "yellow": rgb(0xe0b400), "orange": rgb(0xff780a), "red": rgb(0xe02f44), "blue": rgb(0x3274d9),
	"purple": rgb(0x8f3bb8),
}

// palette has the colours of all other lines. None is red, which means that something is wrong.
var palette = []color.Color{
	rgb(0x3274d9), rgb(0xff9830), rgb(0x17a2a2), rgb(0x8f3bb8), rgb(0x8ab800), rgb(0x8c564b), rgb(0xe377c2), rgb(0x1f4e8c), rgb(0xb59f00),
	rgb(0x7f7f7f),
}

// colors gives a line of the same name the same colour in all panels, as far as no two lines of a panel have one colour.
type colors map[string]color.Color

// of returns the colours of a panel's lines, by their names; fixed are those that the panel itself gives.
func (c colors) of(names []string, fixed map[string]string) map[string]color.Color {
	out, used := map[string]color.Color{}, map[color.Color]bool{}
	give := func(name string, value color.Color) { out[name], used[value] = value, true }
	for _, name := range names {
		if value, found := named[fixed[name]]; found {
			give(name, value)
		}
	}
	for _, name := range names {
		if value, found := c[name]; found && out[name] == nil && !used[value] {
			give(name, value)
		}
	}
	for _, name := range names {
		if out[name] != nil {
			continue
		}
		free := slices.IndexFunc(palette, func(value color.Color) bool { return !used[value] })
		give(name, palette[max(free, 0)])
		if _, found := c[name]; !found {
			c[name] = out[name]
		}
	}
	return out
}
