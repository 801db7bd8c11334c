// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package flame

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"slices"
	"strings"

	"tcm/internal/profiles"
)

//go:embed page.html
var page string

// pageData is what the script of the page reads.
type pageData struct {
	Unit     string      `json:"unit"`
	Objects  bool        `json:"objects"`
	Compared bool        `json:"compared"`
	Legend   [][2]string `json:"legend"`
	// Strings holds every name once.
	Strings []string `json:"strings"`
	// Root is a list of numbers for each node, its children the last element.
	Root []any `json:"root"`
}

// pageWriter collects the data of a page.
type pageWriter struct {
	data   pageData
	places map[string]int
	ranks  []string
}

// WriteHTML writes the stacks as a page for browsers.
func WriteHTML(output io.Writer, set *profiles.Set, title string) error {
	root := newTree(set)
	if root.width == 0 {
		return profiles.ErrNoStacks
	}
	made := &pageWriter{
		data:   pageData{Unit: set.Unit, Objects: set.ObjectsType != "", Compared: set.Compared, Legend: [][2]string{}},
		places: map[string]int{},
		ranks:  objects(root),
	}
	made.data.Root = made.node(root)
	made.legend()
	// The encoder writes no <, so that no name can end the element that holds the data.
	data, err := json.Marshal(made.data)
	if err != nil {
		return err
	}
	_, err = strings.NewReplacer("{{TITLE}}", html.EscapeString(title), "{{SUMMARY}}", html.EscapeString(set.Title()), "{{DATA}}", string(data)).WriteString(output, page)
	return err
}

func (p *pageWriter) place(content string) int {
	found, ok := p.places[content]
	if !ok {
		found = len(p.data.Strings)
		p.places[content] = found
		p.data.Strings = append(p.data.Strings, content)
	}
	return found
}

func (p *pageWriter) node(n *node) []any {
	children := make([]any, len(n.children))
	for i, child := range n.children {
		children[i] = p.node(child)
	}
	return []any{p.place(n.frame.Name), p.place(place(n.frame)), min(slices.Index(p.ranks, n.frame.Object), len(palette)),
		n.new.Amount, n.new.Objects, n.old.Amount, n.old.Objects, n.self.Amount, n.self.Objects, n.width, children}
}

func (p *pageWriter) legend() {
	if p.data.Compared {
		p.data.Legend = [][2]string{{"var(--grew)", "grew"}, {"var(--less)", "became less"}, {"var(--pale)", "as much of it grew as became less"}}
		return
	}
	for rank, name := range p.ranks {
		if rank >= len(palette) {
			p.data.Legend = append(p.data.Legend, [2]string{fmt.Sprintf("var(--o%d)", rank), "other files"})
			return
		}
		if name == "" {
			name = "unknown file"
		}
		p.data.Legend = append(p.data.Legend, [2]string{fmt.Sprintf("var(--o%d)", rank), name})
	}
}
