// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

// Package flame draws the stacks of heap profiles as flame graphs: a page for browsers that needs nothing
// from elsewhere, and a picture. The root is at the top in both.
package flame

import (
	"cmp"
	"slices"

	"tcm/internal/profiles"
)

// node is a function as it was called along one path.
type node struct {
	frame    profiles.Frame
	old, new profiles.Value
	// self is what the function itself asked for, in the newer profile.
	self profiles.Value
	// width is the amount that is drawn: what is there, or, where profiles are compared, all that was
	// added and all that went away. That of a node is at least the sum of its children's.
	width    int64
	children []*node
}

func (n *node) change() int64 { return n.new.Amount - n.old.Amount }

// rootName is the box for everything.
const rootName = "all"

// newTree joins stacks that begin alike. Children are in the order of their names, so that pictures of
// two profiles look alike.
func newTree(set *profiles.Set) *node {
	root := &node{frame: profiles.Frame{Name: rootName}}
	index := map[*node]map[profiles.Frame]*node{}
	for _, stack := range set.Stacks {
		width := max(stack.New.Amount, 0)
		if set.Compared {
			change := stack.Change().Amount
			width = max(change, -change)
		}
		at := root
		at.add(stack, width)
		for _, frame := range stack.Frames {
			at = at.child(index, frame)
			at.add(stack, width)
		}
		at.self = at.self.Plus(stack.New)
	}
	root.finish()
	return root
}

func (n *node) add(stack profiles.Stack, width int64) {
	n.old, n.new = n.old.Plus(stack.Old), n.new.Plus(stack.New)
	n.width += width
}

func (n *node) child(index map[*node]map[profiles.Frame]*node, frame profiles.Frame) *node {
	// Calls at several lines of a function are one box.
	key := profiles.Frame{Name: frame.Name, Object: frame.Object}
	if index[n] == nil {
		index[n] = map[profiles.Frame]*node{}
	}
	found := index[n][key]
	if found == nil {
		found = &node{frame: frame}
		index[n][key] = found
		n.children = append(n.children, found)
	}
	return found
}

// finish leaves out what has no width, and sorts the rest.
func (n *node) finish() {
	n.children = slices.DeleteFunc(n.children, func(one *node) bool { return one.width == 0 })
	slices.SortFunc(n.children, func(one, other *node) int {
		return cmp.Or(cmp.Compare(one.frame.Name, other.frame.Name), cmp.Compare(one.frame.Object, other.frame.Object))
	})
	for _, child := range n.children {
		child.finish()
	}
}

// depth is the number of rows from a node down.
func (n *node) depth(visible func(*node) bool) int {
	deepest := 0
	for _, child := range n.children {
		if visible(child) {
			deepest = max(deepest, child.depth(visible))
		}
	}
	return deepest + 1
}

// objects returns the mapped files of a tree, the one that holds most by itself first.
func objects(root *node) []string {
	held := map[string]int64{}
	var visit func(*node)
	visit = func(n *node) {
		rest := n.width
		for _, child := range n.children {
			rest -= child.width
			visit(child)
		}
		if n != root {
			held[n.frame.Object] += rest
		}
	}
	visit(root)
	names := make([]string, 0, len(held))
	for name := range held {
		names = append(names, name)
	}
	slices.SortFunc(names, func(one, other string) int {
		return cmp.Or(cmp.Compare(held[other], held[one]), cmp.Compare(one, other))
	})
	return names
}
