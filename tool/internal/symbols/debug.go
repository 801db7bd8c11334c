// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"debug/dwarf"
	"debug/elf"
	"sort"
	"strings"
)

// debugInfo looks up addresses in DWARF. It reads a compilation unit when an address of it is asked for.
type debugInfo struct {
	data  *dwarf.Data
	units []*unit
}

// unit is a compilation unit that was read.
type unit struct {
	ranges [][2]uint64
	bodies []*body
	rows   []row
	files  []*dwarf.LineFile
	// scopes has the namespaces and classes of the functions that are in some.
	scopes map[dwarf.Offset]string
}

// body is the code of a function, or of a call that was inlined into one.
type body struct {
	ranges [][2]uint64
	// origin is the entry that has the name.
	origin dwarf.Offset
	// callFile and callLine are where an inlined call stood.
	callFile, callLine int
	inlined            []*body
}

// row is the beginning of code that belongs to one line.
type row struct {
	address uint64
	file    string
	line    int
	end     bool
}

// frame is one function at an address.
type frame struct {
	// name is that of the linker, or that of the source with its namespaces and classes.
	name string
	file string
	line int
}

func newDebugInfo(file *elf.File) *debugInfo {
	if !hasDebug(file) {
		return nil
	}
	data, err := file.DWARF()
	if err != nil {
		return nil
	}
	return &debugInfo{data: data}
}

func contains(ranges [][2]uint64, address uint64) bool {
	for _, one := range ranges {
		if address >= one[0] && address < one[1] {
			return true
		}
	}
	return false
}

// framesAt returns the functions at an address of the file, the innermost first; nothing where the
// debugging information does not cover it.
func (d *debugInfo) framesAt(address uint64) []frame {
	found := d.unitAt(address)
	if found == nil {
		return nil
	}
	for _, one := range found.bodies {
		if contains(one.ranges, address) {
			return d.framesOf(found, one, address)
		}
	}
	return nil
}

// framesOf descends into the inlined calls around the address.
func (d *debugInfo) framesOf(in *unit, outer *body, address uint64) []frame {
	chain := []*body{outer}
	for next := outer; next != nil; {
		next = nil
		for _, one := range chain[len(chain)-1].inlined {
			if contains(one.ranges, address) {
				next = one
				chain = append(chain, one)
				break
			}
		}
	}
	file, line := in.lineAt(address)
	frames := make([]frame, 0, len(chain))
	for i := len(chain) - 1; i >= 0; i-- {
		frames = append(frames, frame{d.nameOf(in, chain[i].origin), file, line})
		file, line = in.fileName(chain[i].callFile), chain[i].callLine
	}
	return frames
}

func (u *unit) fileName(number int) string {
	if number < 0 || number >= len(u.files) || u.files[number] == nil {
		return ""
	}
	return u.files[number].Name
}

func (u *unit) lineAt(address uint64) (string, int) {
	next := sort.Search(len(u.rows), func(i int) bool { return u.rows[i].address > address })
	if next == 0 || u.rows[next-1].end {
		return "", 0
	}
	return u.rows[next-1].file, u.rows[next-1].line
}

func (d *debugInfo) unitAt(address uint64) *unit {
	for _, one := range d.units {
		if contains(one.ranges, address) {
			return one
		}
	}
	reader := d.data.Reader()
	entry, err := reader.SeekPC(address)
	if err != nil {
		return nil
	}
	made := &unit{scopes: map[dwarf.Offset]string{}}
	if made.ranges, err = d.data.Ranges(entry); err != nil {
		return nil
	}
	made.rows, made.files = d.linesOf(entry)
	if entry.Children {
		made.bodies = d.readBodies(reader, made, nil, "")
	}
	d.units = append(d.units, made)
	return made
}

func (d *debugInfo) linesOf(entry *dwarf.Entry) ([]row, []*dwarf.LineFile) {
	reader, err := d.data.LineReader(entry)
	if err != nil || reader == nil {
		return nil, nil
	}
	var rows []row
	for {
		var one dwarf.LineEntry
		if reader.Next(&one) != nil {
			break
		}
		name := ""
		if one.File != nil {
			name = one.File.Name
		}
		rows = append(rows, row{one.Address, name, one.Line, one.EndSequence})
	}
	// The end of a sequence comes before the beginning of another at the same address.
	sort.SliceStable(rows, func(i, j int) bool {
		if rows[i].address != rows[j].address {
			return rows[i].address < rows[j].address
		}
		return rows[i].end && !rows[j].end
	})
	return rows, reader.Files()
}

// readBodies reads the children of an entry up to their end. Calls inlined into outer are added to it,
// functions are returned. scope is what names in the source begin with here.
func (d *debugInfo) readBodies(reader *dwarf.Reader, of *unit, outer *body, scope string) []*body {
	var functions []*body
	for {
		entry, err := reader.Next()
		if err != nil || entry == nil || entry.Tag == 0 {
			return functions
		}
		into, inside := outer, scope
		switch entry.Tag {
		case dwarf.TagSubprogram, dwarf.TagInlinedSubroutine:
			if scope != "" {
				of.scopes[entry.Offset] = scope
			}
			inside = scopeIn(scope, entry)
			made := d.newBody(entry)
			if made == nil {
				break
			}
			if entry.Tag == dwarf.TagInlinedSubroutine && outer != nil {
				outer.inlined = append(outer.inlined, made)
			} else {
				functions = append(functions, made)
			}
			into = made
		case dwarf.TagNamespace, dwarf.TagModule, dwarf.TagStructType, dwarf.TagClassType, dwarf.TagUnionType:
			inside = scopeIn(scope, entry)
		case dwarf.TagLexDwarfBlock:
		default:
			reader.SkipChildren()
			continue
		}
		if entry.Children {
			functions = append(functions, d.readBodies(reader, of, into, inside)...)
		}
	}
}

// scopeIn is what names inside an entry begin with. Template arguments are left out, because they are longer
// than all the rest.
func scopeIn(scope string, entry *dwarf.Entry) string {
	name, _ := entry.Val(dwarf.AttrName).(string)
	switch {
	case name == "" && entry.Tag == dwarf.TagNamespace:
		name = "(anonymous namespace)"
	case name == "":
		return scope
	}
	if cut := strings.IndexByte(name, '<'); cut > 0 && entry.Tag != dwarf.TagSubprogram {
		name = name[:cut]
	}
	return scope + name + "::"
}

// newBody returns nil for an entry without code.
func (d *debugInfo) newBody(entry *dwarf.Entry) *body {
	ranges, err := d.data.Ranges(entry)
	if err != nil || len(ranges) == 0 {
		return nil
	}
	file, _ := entry.Val(dwarf.AttrCallFile).(int64)
	line, _ := entry.Val(dwarf.AttrCallLine).(int64)
	return &body{ranges: ranges, origin: entry.Offset, callFile: int(file), callLine: int(line)}
}

// maximalOrigins bounds how many entries a name is searched through, because a damaged file may have a
// ring of them.
const maximalOrigins = 8

// nameOf returns the name that the linker uses, else that of the source.
func (d *debugInfo) nameOf(in *unit, offset dwarf.Offset) string {
	plain := ""
	for range maximalOrigins {
		reader := d.data.Reader()
		reader.Seek(offset)
		entry, err := reader.Next()
		if err != nil || entry == nil {
			return plain
		}
		if name, ok := entry.Val(dwarf.AttrLinkageName).(string); ok {
			return name
		}
		if name, ok := entry.Val(dwarf.AttrName).(string); ok && plain == "" {
			plain = in.scopes[offset] + name
		}
		origin, ok := entry.Val(dwarf.AttrAbstractOrigin).(dwarf.Offset)
		if !ok {
			origin, ok = entry.Val(dwarf.AttrSpecification).(dwarf.Offset)
		}
		if !ok {
			return plain
		}
		offset = origin
	}
	return plain
}
