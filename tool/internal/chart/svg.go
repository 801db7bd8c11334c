// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

// Package chart draws charts as self-contained SVG: no script, no style sheet, no font from
// elsewhere. The charts lay themselves out from their data; nothing is placed by hand.
package chart

import (
	"fmt"
	"strings"
)

// Sizes in pixels. Text is measured by its number of letters, which is near enough for labels.
const (
	fontSize    = 12.0
	letterWidth = 0.58 * fontSize
	lineHeight  = 1.4 * fontSize
	titleSize   = 16.0
	margin      = 20.0
)

// Colours of what is not data.
const (
	ink   = "#222222"
	faint = "#666666"
	grid  = "#dddddd"
	paper = "#ffffff"
)

// Series is how one thing is drawn in every chart in which it appears.
type Series struct {
	Name  string
	Color string
	// Strong series are drawn on top and thicker.
	Strong bool
	// Dashed lines are for references.
	Dashed bool
	// Mark is the shape of its points.
	Mark Mark
}

// Mark is the shape of a point, so that charts can be read without colours.
type Mark int

// The shapes.
const (
	Circle Mark = iota
	Square
	Diamond
	Triangle
	TriangleDown
	Cross
	markCount
)

// colors are told apart by most eyes; the first is for the strong series.
var colors = []string{
	"#d00000", "#0072b2", "#e69f00", "#009e73", "#8a4fbf", "#56b4e9", "#a0522d", "#cc79a7",
	"#5c7c00", "#1f4e79", "#f4743b", "#17a2a2",
}

// Looks is the number of colours besides that of the strong series. A number that is higher by as
// much has the same colour and another mark.
const Looks = 11

// Style returns the look of the series with this number; 0 is the one that the chart is about.
func Style(name string, number int) Series {
	color := colors[0]
	if number > 0 {
		color = colors[1+(number-1)%Looks]
	}
	return Series{
		Name:   name,
		Color:  color,
		Mark:   Mark(number % int(markCount)),
		Strong: number == 0,
	}
}

// Reference returns the look of the series that others are compared with.
func Reference(name string) Series {
	return Series{Name: name, Color: "#555555", Mark: Square, Dashed: true}
}

// canvas collects SVG elements.
type canvas struct{ out strings.Builder }

var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;")

type anchor string

const (
	start  anchor = "start"
	middle anchor = "middle"
	end    anchor = "end"
)

func (c *canvas) text(x, y, size float64, where anchor, color, content string) {
	fmt.Fprintf(&c.out, `<text x="%.1f" y="%.1f" font-size="%.0f" text-anchor="%s" fill="%s">%s</text>`+"\n",
		x, y, size, where, color, escaper.Replace(content))
}

func (c *canvas) bold(x, y, size float64, where anchor, content string) {
	fmt.Fprintf(&c.out, `<text x="%.1f" y="%.1f" font-size="%.0f" font-weight="bold" text-anchor="%s" fill="%s">%s</text>`+"\n",
		x, y, size, where, ink, escaper.Replace(content))
}

// vertical writes upwards, centred at a point.
func (c *canvas) vertical(x, y float64, content string) {
	fmt.Fprintf(&c.out, `<text transform="translate(%.1f,%.1f) rotate(-90)" font-size="%.0f" text-anchor="middle" fill="%s">%s</text>`+"\n",
		x, y, fontSize, faint, escaper.Replace(content))
}

func (c *canvas) line(x1, y1, x2, y2, width float64, color string, dashed bool) {
	fmt.Fprintf(&c.out, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="%.1f"%s/>`+"\n",
		x1, y1, x2, y2, color, width, dash(dashed))
}

func dash(dashed bool) string {
	if dashed {
		return ` stroke-dasharray="5 3"`
	}
	return ""
}

func (c *canvas) box(x, y, width, height float64, color, hint string) {
	fmt.Fprintf(&c.out, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s">`, x, y, width, height, color)
	if hint != "" {
		fmt.Fprintf(&c.out, "<title>%s</title>", escaper.Replace(hint))
	}
	c.out.WriteString("</rect>\n")
}

func (c *canvas) polyline(points [][2]float64, width float64, color string, dashed bool) {
	c.out.WriteString(`<polyline fill="none" points="`)
	for i, point := range points {
		if i > 0 {
			c.out.WriteByte(' ')
		}
		fmt.Fprintf(&c.out, "%.1f,%.1f", point[0], point[1])
	}
	fmt.Fprintf(&c.out, `" stroke="%s" stroke-width="%.1f"%s/>`+"\n", color, width, dash(dashed))
}

// mark draws a point of a series; hint is shown when a pointer rests on it.
func (c *canvas) mark(x, y float64, series Series, hint string) {
	size := 3.6
	if series.Strong {
		size = 4.8
	}
	var corners [][2]float64
	switch series.Mark {
	case Circle:
		fmt.Fprintf(&c.out, `<circle cx="%.1f" cy="%.1f" r="%.1f" fill="%s"><title>%s</title></circle>`+"\n",
			x, y, size, series.Color, escaper.Replace(hint))
		return
	case Square:
		corners = [][2]float64{{-0.9, -0.9}, {0.9, -0.9}, {0.9, 0.9}, {-0.9, 0.9}}
	case Diamond:
		corners = [][2]float64{{0, -1.3}, {1.3, 0}, {0, 1.3}, {-1.3, 0}}
	case Triangle:
		corners = [][2]float64{{0, -1.2}, {1.1, 0.8}, {-1.1, 0.8}}
	case TriangleDown:
		corners = [][2]float64{{0, 1.2}, {1.1, -0.8}, {-1.1, -0.8}}
	default:
		corners = [][2]float64{{-1.2, -0.5}, {-0.5, -1.2}, {0, -0.6}, {0.5, -1.2}, {1.2, -0.5}, {0.6, 0},
			{1.2, 0.5}, {0.5, 1.2}, {0, 0.6}, {-0.5, 1.2}, {-1.2, 0.5}, {-0.6, 0}}
	}
	c.out.WriteString(`<polygon points="`)
	for i, corner := range corners {
		if i > 0 {
			c.out.WriteByte(' ')
		}
		fmt.Fprintf(&c.out, "%.1f,%.1f", x+corner[0]*size, y+corner[1]*size)
	}
	fmt.Fprintf(&c.out, `" fill="%s"><title>%s</title></polygon>`+"\n", series.Color, escaper.Replace(hint))
}

// legend lays the names of the series out from a point, within a width, and returns its height.
func (c *canvas) legend(x, y, width float64, series []Series) float64 {
	const swatch = 24.0
	left, top := x, y
	for _, one := range series {
		entry := swatch + textWidth(one.Name) + 22
		if left > x && left+entry > x+width {
			left = x
			top += lineHeight
		}
		c.line(left, top-4, left+swatch-6, top-4, strokeWidth(one), one.Color, one.Dashed)
		c.mark(left+(swatch-6)/2, top-4, one, one.Name)
		c.text(left+swatch, top, fontSize, start, ink, one.Name)
		left += entry
	}
	return top - y + lineHeight
}

func strokeWidth(series Series) float64 {
	if series.Strong {
		return 2.6
	}
	return 1.4
}

func textWidth(content string) float64 { return float64(len([]rune(content))) * letterWidth }

// document returns the whole file.
func (c *canvas) document(width, height float64) []byte {
	return []byte(fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" viewBox="0 0 %.0f %.0f" font-family="Helvetica, Arial, DejaVu Sans, sans-serif">
<rect width="100%%" height="100%%" fill="%s"/>
%s</svg>
`, width, height, width, height, paper, c.out.String()))
}

// heading writes title and subtitle and returns where the chart begins.
func (c *canvas) heading(title, subtitle string) float64 {
	y := margin + titleSize
	c.bold(margin, y, titleSize, start, title)
	if subtitle != "" {
		y += lineHeight
		c.text(margin, y, fontSize, start, faint, subtitle)
	}
	return y + lineHeight
}
