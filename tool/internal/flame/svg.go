// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package flame

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"tcm/internal/profiles"
)

// Sizes in pixels. Letters are measured by the widest that common fonts have for names on average.
const (
	pictureWidth = 1200.0
	margin       = 16.0
	rowHeight    = 19.0
	fontSize     = 12.0
	letterWidth  = 0.6 * fontSize
	titleSize    = 16.0
	legendHeight = 24.0
	// gap is between a name and an amount; renderers join plain spaces.
	gap = "\u00a0\u00a0"
	// narrowest is the width below which a box is left out.
	narrowest = 1.0
)

var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;")

// escape makes text fit for XML, which has no way to write control characters.
func escape(content string) string {
	content = strings.Map(func(letter rune) rune {
		if letter < ' ' && letter != '\n' && letter != '\t' || letter == 0xfffe || letter == 0xffff {
			return '?'
		}
		return letter
	}, strings.ToValidUTF8(content, "?"))
	return escaper.Replace(content)
}

// picture is a flame graph in the making.
type picture struct {
	set   *profiles.Set
	root  *node
	ranks []string
	scale float64
	top   float64
	out   strings.Builder
}

// WriteSVG draws the stacks as a picture.
func WriteSVG(output io.Writer, set *profiles.Set, title string) error {
	root := newTree(set)
	if root.width == 0 {
		return profiles.ErrNoStacks
	}
	drawn := &picture{set: set, root: root, ranks: objects(root), scale: (pictureWidth - 2*margin) / float64(root.width)}
	visible := func(n *node) bool { return float64(n.width)*drawn.scale >= narrowest }
	drawn.top = margin + titleSize + 1.6*fontSize + 10
	bottom := drawn.top + float64(root.depth(visible))*rowHeight
	height := bottom + legendHeight + margin
	fmt.Fprintf(&drawn.out, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" viewBox="0 0 %.0f %.0f" font-family="Verdana, 'DejaVu Sans', sans-serif" font-size="%.0f">`+"\n",
		pictureWidth, height, pictureWidth, height, fontSize)
	fmt.Fprintf(&drawn.out, `<rect width="100%%" height="100%%" fill="#ffffff"/>`+"\n")
	drawn.text(margin, margin+titleSize-2, titleSize, "#222222", fit(title, pictureWidth-2*margin, titleSize*0.62))
	drawn.text(margin, margin+titleSize+1.6*fontSize-2, fontSize, "#555555", fit(set.Title(), pictureWidth-2*margin, letterWidth))
	drawn.draw(root, margin, 0, visible)
	drawn.legend(bottom + 8)
	drawn.out.WriteString("</svg>\n")
	_, err := io.WriteString(output, drawn.out.String())
	return err
}

func (p *picture) text(x, y, size float64, color, content string) {
	fmt.Fprintf(&p.out, `<text x="%.1f" y="%.1f" font-size="%.0f" fill="%s">%s</text>`+"\n", x, y, size, color, escape(content))
}

func (p *picture) color(n *node) string {
	switch {
	case p.set.Compared:
		return changeColor(n.change(), n.width)
	case n == p.root:
		return rootColor
	}
	return colorOf(slices.Index(p.ranks, n.frame.Object))
}

func (p *picture) draw(n *node, x float64, row int, visible func(*node) bool) {
	width := float64(n.width) * p.scale
	y := p.top + float64(row)*rowHeight
	fmt.Fprintf(&p.out, `<g><title>%s</title><rect x="%.2f" y="%.1f" width="%.2f" height="%.1f" rx="1.5" fill="%s"/>`,
		escape(strings.Join(describe(p.set, p.root, n), "\n")), x, y, max(width-0.6, 0.3), rowHeight-1, p.color(n))
	if label := fit(p.label(n), width-7, letterWidth); label != "" {
		fmt.Fprintf(&p.out, `<text x="%.1f" y="%.1f" fill="#1a1a1a">%s</text>`, x+3, y+rowHeight-6, escape(label))
	}
	p.out.WriteString("</g>\n")
	for _, child := range n.children {
		if visible(child) {
			p.draw(child, x, row+1, visible)
		}
		x += float64(child.width) * p.scale
	}
}

// label has the amount behind the name where there is room for both.
func (p *picture) label(n *node) string {
	held := profiles.Format(n.new.Amount, p.set.Unit)
	if p.set.Compared {
		held = profiles.FormatChange(n.change(), p.set.Unit)
	}
	if long := n.frame.Name + gap + held; textWidth(long, letterWidth) <= float64(n.width)*p.scale-7 {
		return long
	}
	return n.frame.Name
}

func textWidth(content string, letter float64) float64 { return float64(len([]rune(content))) * letter }

// fit cuts a text to a width, with an ellipsis; nothing is left where less than three letters fit.
func fit(content string, width, letter float64) string {
	letters := []rune(content)
	most := int(width / letter)
	switch {
	case most >= len(letters):
		return content
	case most < 3:
		return ""
	}
	return string(letters[:most-1]) + "…"
}

// legend explains the colours.
func (p *picture) legend(y float64) {
	type entry struct{ color, name string }
	var entries []entry
	if p.set.Compared {
		entries = []entry{{changeColor(1, 1), "grew"}, {changeColor(-1, 1), "became less"}, {changeColor(1, 4), "grew in part"},
			{changeColor(-1, 4), "became less in part"}}
	} else {
		for rank, name := range p.ranks {
			if rank == len(palette) {
				entries = append(entries, entry{otherColor, "others"})
				break
			}
			if name == "" {
				name = "unknown file"
			}
			entries = append(entries, entry{colorOf(rank), name})
		}
	}
	x := margin
	for _, one := range entries {
		name := fit(one.name, 240, letterWidth)
		next := x + 16 + textWidth(name, letterWidth) + 18
		if next > pictureWidth-margin {
			return
		}
		fmt.Fprintf(&p.out, `<rect x="%.1f" y="%.1f" width="11" height="11" rx="2" fill="%s"/>`, x, y+1, one.color)
		p.text(x+16, y+11, fontSize, "#555555", name)
		x = next
	}
}
