// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package chart

import (
	"fmt"
	"math"
)

// Line is one series in a panel: a value for each x of the chart, NaN where there is none.
type Line struct {
	Series int
	Values []float64
}

// Panel is one of several charts with the same axes.
type Panel struct {
	Title string
	Lines []Line
}

// Lines is a grid of panels with a common legend; each panel has a vertical axis of its own.
type Lines struct {
	Title, Subtitle string
	XAxis, YAxis    string
	// X are the values along the horizontal axis, rising, drawn at equal distances.
	X []float64
	// Bytes writes X as sizes.
	Bytes  bool
	Series []Series
	Panels []Panel
}

const (
	panelWidth  = 360.0
	panelHeight = 230.0
	panelLeft   = 62.0
	panelTop    = 34.0
	panelBottom = 52.0
	columns     = 3
)

// SVG draws the chart.
func (l Lines) SVG() []byte {
	var c canvas
	across := min(columns, max(1, len(l.Panels)))
	width := math.Max(2*margin+float64(across)*(panelLeft+panelWidth),
		2*margin+math.Max(textWidth(l.Subtitle), textWidth(l.Title)*titleSize/fontSize))
	y := c.heading(l.Title, l.Subtitle)
	y += c.legend(margin, y, width-2*margin, l.Series)
	down := (len(l.Panels) + across - 1) / across
	for i, panel := range l.Panels {
		left := margin + float64(i%across)*(panelLeft+panelWidth) + panelLeft
		top := y + float64(i/across)*(panelTop+panelHeight+panelBottom) + panelTop
		l.drawPanel(&c, panel, left, top)
	}
	return c.document(width, y+float64(down)*(panelTop+panelHeight+panelBottom)+margin)
}

func (l Lines) drawPanel(c *canvas, panel Panel, left, top float64) {
	const inner = 14.0
	right, bottom := left+panelWidth-margin, top+panelHeight
	c.bold((left+right)/2, top-10, 13, middle, panel.Title)
	highest := 0.0
	for _, line := range panel.Lines {
		for _, value := range line.Values {
			if !math.IsNaN(value) {
				highest = math.Max(highest, value)
			}
		}
	}
	ticks := linearTicks(highest, 5)
	vertical := scale{low: 0, high: ticks[len(ticks)-1].value, from: bottom, to: top}
	for _, tick := range ticks {
		at := vertical.at(tick.value)
		c.line(left, at, right, at, 1, grid, false)
		c.text(left-6, at+4, fontSize, end, faint, tick.label)
	}
	horizontal := scale{low: 0, high: float64(len(l.X) - 1), from: left + inner, to: right - inner}
	l.drawX(c, horizontal, bottom)
	c.line(left, bottom, right, bottom, 1, faint, false)
	c.line(left, top, left, bottom, 1, faint, false)
	c.text((left+right)/2, bottom+2.4*lineHeight, fontSize, middle, faint, l.XAxis)
	c.vertical(left-panelLeft+16, (top+bottom)/2, l.YAxis)
	for _, strong := range []bool{false, true} {
		for _, line := range panel.Lines {
			if l.Series[line.Series].Strong == strong {
				l.drawLine(c, panel, line, horizontal, vertical)
			}
		}
	}
}

// drawX labels the horizontal axis and leaves out what would touch its neighbour.
func (l Lines) drawX(c *canvas, horizontal scale, bottom float64) {
	lastEnd := math.Inf(-1)
	for i, value := range l.X {
		at := horizontal.at(float64(i))
		c.line(at, bottom, at, bottom+4, 1, faint, false)
		label := l.xLabel(value)
		half := textWidth(label) / 2
		if at-half > lastEnd+4 {
			c.text(at, bottom+4+fontSize, fontSize, middle, faint, label)
			lastEnd = at + half
		}
	}
}

func (l Lines) xLabel(value float64) string {
	if l.Bytes {
		return SizeLabel(value)
	}
	return fmt.Sprintf("%g", value)
}

func (l Lines) drawLine(c *canvas, panel Panel, line Line, horizontal, vertical scale) {
	series := l.Series[line.Series]
	var points [][2]float64
	flush := func() {
		if len(points) > 1 {
			c.polyline(points, strokeWidth(series), series.Color, series.Dashed)
		}
		points = nil
	}
	for i, value := range line.Values {
		if math.IsNaN(value) {
			flush()
			continue
		}
		points = append(points, [2]float64{horizontal.at(float64(i)), vertical.at(value)})
	}
	flush()
	for i, value := range line.Values {
		if !math.IsNaN(value) {
			c.mark(horizontal.at(float64(i)), vertical.at(value), series,
				fmt.Sprintf("%s, %s, %s: %.4g", panel.Title, series.Name, l.xLabel(l.X[i]), value))
		}
	}
}
