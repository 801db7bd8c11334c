// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package text

import (
	"io"
	"unicode"
	"unicode/utf8"
)

// Printable is a writer that replaces what a terminal would obey rather than show, because text that others wrote may
// move its cursor, change its title or hide what stands before. Line breaks and tabs stay.
type Printable struct {
	to io.Writer
	// begun is a character whose last bytes are still to come.
	begun []byte
}

// NewPrintable returns a writer that hands everything on to another one.
func NewPrintable(to io.Writer) *Printable { return &Printable{to: to} }

// replacement takes the place of what is not shown.
const replacement = '?'

// Write returns the number of bytes that it took, which are not those that it handed on.
func (p *Printable) Write(data []byte) (int, error) {
	rest := append(p.begun, data...)
	shown := make([]byte, 0, len(rest))
	for len(rest) > 0 && utf8.FullRune(rest) {
		letter, size := utf8.DecodeRune(rest)
		rest = rest[size:]
		switch {
		case letter == '\n' || letter == '\t':
			shown = append(shown, byte(letter))
		case letter == utf8.RuneError && size == 1, !unicode.IsGraphic(letter):
			shown = append(shown, replacement)
		default:
			shown = utf8.AppendRune(shown, letter)
		}
	}
	p.begun = append([]byte(nil), rest...)
	if _, err := p.to.Write(shown); err != nil {
		return 0, err
	}
	return len(data), nil
}
