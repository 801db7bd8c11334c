// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package chart

import (
	"fmt"
	"math"
)

// RatioRow is one line of a Ratios chart: a value for each series, NaN where there is none.
type RatioRow struct {
	Label  string
	Values []float64
	// Remark is written behind the row.
	Remark string
}

// Ratios shows, for each row, how the series compare with a baseline of 1: a bar for the strong
// series and a mark for each other one, on a logarithmic axis, so that twice and half are equally
// far from the baseline.
type Ratios struct {
	Title, Subtitle string
	// Axis says what the ratio is of, and which side is better.
	Axis   string
	Series []Series
	Rows   []RatioRow
}

const (
	rowHeight  = 20.0
	plotWidth  = 620.0
	labelSpace = 12.0
)

// SVG draws the chart.
func (r Ratios) SVG() []byte {
	var c canvas
	labels, remarks := 0.0, 0.0
	for _, row := range r.Rows {
		labels = math.Max(labels, textWidth(row.Label))
		remarks = math.Max(remarks, textWidth(row.Remark))
	}
	left := margin + labels + labelSpace
	width := math.Max(left+plotWidth+labelSpace+remarks+margin,
		2*margin+math.Max(textWidth(r.Subtitle), textWidth(r.Title)*titleSize/fontSize))
	y := c.heading(r.Title, r.Subtitle)
	y += c.legend(margin, y, width-2*margin, r.Series) + lineHeight
	bottom := y + rowHeight*float64(len(r.Rows))
	axis := r.axis(left, left+plotWidth)
	r.drawAxis(&c, axis, y, bottom)
	for i, row := range r.Rows {
		center := y + rowHeight*(float64(i)+0.5)
		c.text(left-labelSpace, center+4, fontSize, end, ink, row.Label)
		r.drawRow(&c, axis, row, center)
		if row.Remark != "" {
			c.text(left+plotWidth+labelSpace, center+4, fontSize, start, faint, row.Remark)
		}
	}
	c.text(left+plotWidth/2, bottom+2.4*lineHeight, fontSize, middle, faint, r.Axis)
	return c.document(width, bottom+3*lineHeight+margin)
}

// axis spans all values and the baseline.
func (r Ratios) axis(from, to float64) scale {
	low, high := 0.9, 1.1
	for _, row := range r.Rows {
		for _, value := range row.Values {
			if value > 0 && !math.IsInf(value, 1) {
				low = math.Min(low, value*0.93)
				high = math.Max(high, value*1.07)
			}
		}
	}
	return scale{low: low, high: high, from: from, to: to, logarithmic: true}
}

func (r Ratios) drawAxis(c *canvas, axis scale, top, bottom float64) {
	lastEnd := math.Inf(-1)
	for _, tick := range ratioTicks(axis.low, axis.high) {
		x := axis.at(tick.value)
		color, thick := grid, 1.0
		if tick.value == 1 {
			color, thick = faint, 1.5
		}
		c.line(x, top-4, x, bottom+4, thick, color, false)
		half := textWidth(tick.label) / 2
		if x-half > lastEnd+6 {
			c.text(x, bottom+4+fontSize, fontSize, middle, faint, tick.label)
			c.text(x, top-8, fontSize, middle, faint, tick.label)
			lastEnd = x + half
		}
	}
}

func (r Ratios) drawRow(c *canvas, axis scale, row RatioRow, y float64) {
	const bar = rowHeight * 0.5
	hint := func(i int) string {
		return fmt.Sprintf("%s, %s: %.3g", row.Label, r.Series[i].Name, row.Values[i])
	}
	for i, series := range r.Series {
		if series.Strong && row.Values[i] > 0 {
			from, to := axis.at(1), axis.at(row.Values[i])
			c.box(math.Min(from, to), y-bar/2, math.Abs(to-from), bar, "#f3b0b0", hint(i))
		}
	}
	for _, strong := range []bool{false, true} {
		for i, series := range r.Series {
			if series.Strong == strong && row.Values[i] > 0 {
				c.mark(axis.at(row.Values[i]), y, series, hint(i))
			}
		}
	}
}
