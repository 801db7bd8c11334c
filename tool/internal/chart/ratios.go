// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package chart

import (
	"fmt"
	"math"
	"sort"
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
	low, high := r.span()
	for i := range r.Rows {
		row := &r.Rows[i]
		row.Remark += r.beyond(*row, low, high)
		labels = math.Max(labels, textWidth(row.Label))
		remarks = math.Max(remarks, textWidth(row.Remark))
	}
	left := margin + labels + labelSpace
	width := math.Max(left+plotWidth+labelSpace+remarks+margin,
		2*margin+math.Max(textWidth(r.Subtitle), textWidth(r.Title)*titleSize/fontSize))
	y := c.heading(r.Title, r.Subtitle)
	y += c.legend(margin, y, width-2*margin, r.Series) + lineHeight
	bottom := y + rowHeight*float64(len(r.Rows))
	axis := scale{low: low, high: high, from: left, to: left + plotWidth, logarithmic: true}
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

// farOff is how many times a value must exceed nearly all others to be left off the axis, which one
// workload would stretch otherwise.
const farOff = 4.0

// span is what the axis shows: the baseline and all values, but for those far off.
func (r Ratios) span() (low, high float64) {
	var values []float64
	for _, row := range r.Rows {
		for _, value := range row.Values {
			if value > 0 && !math.IsInf(value, 1) {
				values = append(values, value)
			}
		}
	}
	low, high = 0.9, 1.1
	if len(values) == 0 {
		return low, high
	}
	sort.Float64s(values)
	most := farOff * values[(len(values)-1)*97/100]
	least := values[(len(values)-1)*3/100] / farOff
	for _, value := range values {
		if value >= least && value <= most {
			low, high = math.Min(low, value*0.93), math.Max(high, value*1.07)
		}
	}
	return low, high
}

// beyond names the values of a row that are off the axis.
func (r Ratios) beyond(row RatioRow, low, high float64) string {
	named := ""
	for i, value := range row.Values {
		if value > high || value > 0 && value < low {
			named += fmt.Sprintf(" %s %.3g", r.Series[i].Name, value)
		}
	}
	if named == "" {
		return ""
	}
	return " off the axis:" + named
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
			from, to := axis.at(1), axis.at(min(max(row.Values[i], axis.low), axis.high))
			c.box(math.Min(from, to), y-bar/2, math.Abs(to-from), bar, "#f3b0b0", hint(i))
		}
	}
	for _, strong := range []bool{false, true} {
		for i, series := range r.Series {
			if series.Strong == strong && row.Values[i] >= axis.low && row.Values[i] <= axis.high {
				c.mark(axis.at(row.Values[i]), y, series, hint(i))
			}
		}
	}
}
