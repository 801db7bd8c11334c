// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package flame

import (
	"fmt"
	"math"
)

// palette has a colour for each of the mapped files that hold most; the text on them is dark.
var palette = []string{"#f6a96c", "#8fc1e3", "#a8d59d", "#d9b3e6", "#f2d16b", "#8ad3c8", "#f0a6b4", "#c9c39a"}

// otherColor is that of all further files, and rootColor that of the box for everything.
const (
	otherColor = "#cfcfcf"
	rootColor  = "#dedede"
)

// colorOf returns the colour of a file by its rank.
func colorOf(rank int) string {
	if rank < 0 || rank >= len(palette) {
		return otherColor
	}
	return palette[rank]
}

// changeColor is red for what grew and blue for what became less, the paler the more of it was evened
// out.
func changeColor(change, width int64) string {
	if width == 0 || change == 0 {
		return "#e6e6e6"
	}
	share := math.Min(1, math.Abs(float64(change))/float64(width))
	strong := [3]float64{240, 128, 112}
	if change < 0 {
		strong = [3]float64{110, 165, 235}
	}
	const pale = 236
	mix := func(to float64) int { return int(math.Round(pale + (to-pale)*(0.25+0.75*share))) }
	return fmt.Sprintf("#%02x%02x%02x", mix(strong[0]), mix(strong[1]), mix(strong[2]))
}
