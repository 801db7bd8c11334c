// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"debug/elf"
	"encoding/binary"
)

// tableHead is how the sorted table of the functions that can be unwound begins: version 1, and encodings by 4 bytes each,
// relative ones but for the number of entries. Linkers write no other.
var tableHead = [4]byte{1, 0x1b, 0x03, 0x3b}

// unwindable returns the functions that a file can be unwound through, without names and in the order of their addresses.
// A stripped file has them as well.
func unwindable(file *elf.File) []symbol {
	header, records := file.Section(".eh_frame_hdr"), file.Section(".eh_frame")
	if header == nil || records == nil {
		return nil
	}
	table, err := header.Data()
	if err != nil || len(table) < 12 || [4]byte(table) != tableHead {
		return nil
	}
	content, err := records.Data()
	if err != nil {
		return nil
	}
	order := file.ByteOrder
	count := uint64(order.Uint32(table[8:]))
	var found []symbol
	for entries := table[12:]; count > 0 && len(entries) >= 8; count, entries = count-1, entries[8:] {
		start := relative(order, entries, header.Addr)
		if size := sizeIn(order, content, records.Addr, relative(order, entries[4:], header.Addr), start); size > 0 {
			found = append(found, symbol{address: start, size: size})
		}
	}
	return found
}

// relative reads an address that is relative to another one.
func relative(order binary.ByteOrder, data []byte, base uint64) uint64 {
	return base + uint64(int64(int32(order.Uint32(data))))
}

// sizeIn returns the size of the function at start, of which there is a record: its length, the distance to what records
// have in common, the start relative to where that is, and the size. It returns 0 for records of another form.
func sizeIn(order binary.ByteOrder, content []byte, base, record, start uint64) uint64 {
	const head, length = 8, 16
	at := record - base
	if at >= uint64(len(content)) || uint64(len(content))-at < length {
		return 0
	}
	fields := content[at+head:]
	if relative(order, fields, record+head) != start {
		return 0
	}
	return uint64(order.Uint32(fields[4:]))
}
