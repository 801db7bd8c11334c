// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package chart

import "math"

// Bar is one bar of a group; a value of NaN leaves it out and writes its label instead.
type Bar struct {
	Series int
	Value  float64
	// Label is written to the right of all bars.
	Label string
}

// BarGroup is a heading with its bars.
type BarGroup struct {
	Title string
	Bars  []Bar
}

// Bars shows groups of horizontal bars from 0; each group has a scale of its own unless Common.
type Bars struct {
	Title, Subtitle string
	Axis            string
	Series          []Series
	Groups          []BarGroup
	// Common gives all groups one scale, with a line at 1 for ratios.
	Common bool
}

// SVG draws the chart.
func (b Bars) SVG() []byte {
	const barHeight, gap, length = 16.0, 5.0, 480.0
	var c canvas
	names, labels := 0.0, 0.0
	for _, group := range b.Groups {
		for _, bar := range group.Bars {
			names = math.Max(names, textWidth(b.Series[bar.Series].Name))
			labels = math.Max(labels, textWidth(bar.Label))
		}
	}
	left := margin + names + labelSpace
	width := math.Max(left+length+labelSpace+labels+margin,
		2*margin+math.Max(textWidth(b.Subtitle), textWidth(b.Title)*titleSize/fontSize))
	y := c.heading(b.Title, b.Subtitle)
	for _, group := range b.Groups {
		y += lineHeight
		c.bold(margin, y, 13, start, group.Title)
		y += gap + 4
		axis := scale{low: 0, high: b.highest(group), from: left, to: left + length}
		bottom := y + float64(len(group.Bars))*(barHeight+gap) - gap
		c.line(left, y-3, left, bottom+3, 1, faint, false)
		if b.Common && axis.high >= 1 {
			c.line(axis.at(1), y-3, axis.at(1), bottom+3, 1, ink, true)
		}
		for _, bar := range group.Bars {
			series := b.Series[bar.Series]
			c.text(left-labelSpace, y+barHeight-4, fontSize, end, ink, series.Name)
			if bar.Value > 0 {
				c.box(left, y, axis.at(bar.Value)-left, barHeight, series.Color, series.Name+": "+bar.Label)
			}
			// In a column of their own, where neither bars nor the line at 1 are.
			c.text(left+length+labelSpace, y+barHeight-4, fontSize, start, ink, bar.Label)
			y += barHeight + gap
		}
		y += gap
	}
	if b.Axis != "" {
		y += lineHeight
		c.text(left, y, fontSize, start, faint, b.Axis)
	}
	return c.document(width, y+margin)
}

func (b Bars) highest(group BarGroup) float64 {
	groups := []BarGroup{group}
	if b.Common {
		groups = b.Groups
	}
	highest := 0.0
	for _, one := range groups {
		for _, bar := range one.Bars {
			if !math.IsNaN(bar.Value) {
				highest = math.Max(highest, bar.Value)
			}
		}
	}
	if highest == 0 {
		return 1
	}
	return highest
}
