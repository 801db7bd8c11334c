// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"bytes"
	"cmp"
	"debug/elf"
	"encoding/binary"
	"slices"
)

// stubSuffix ends the names of stubs of the procedure linkage table, after the function that they lead to.
const stubSuffix = "@plt"

// otherStubs names the code in that table besides: it finds functions at their first call, or leads to one that is not
// known.
const otherStubs = "plt stubs"

// leastStub is the size of a jump, filled up.
const leastStub = 8

// stubsOf returns the stubs of the procedure linkage tables, which have no names in symbol tables. functionAt finds a
// function of the file by its address.
func stubsOf(file *elf.File, functionAt func(address uint64) string) []symbol {
	slots := slotsOf(file, functionAt)
	var found []symbol
	for _, section := range file.Sections {
		if !slices.Contains([]string{".plt", ".plt.sec", ".plt.got"}, section.Name) || section.Type != elf.SHT_PROGBITS {
			continue
		}
		if file.Machine != elf.EM_X86_64 {
			found = append(found, symbol{section.Addr, section.Size, otherStubs})
			continue
		}
		if code, err := section.Data(); err == nil {
			found = append(found, stubsIn(code, section, slots)...)
		}
	}
	return found
}

// stubsIn returns the stubs of one table.
func stubsIn(code []byte, section *elf.Section, slots map[uint64]string) []symbol {
	// Linkers that do not tell the size align the table to it.
	size := max(cmp.Or(section.Entsize, section.Addralign), leastStub)
	var found []symbol
	for start := uint64(0); start < uint64(len(code)); start += size {
		stub := code[start:min(start+size, uint64(len(code)))]
		name := otherStubs
		if function := slots[slotOf(stub, section.Addr+start)]; function != "" {
			name = function + stubSuffix
		}
		found = append(found, symbol{section.Addr + start, uint64(len(stub)), name})
	}
	return found
}

// slotOf returns the address from which a stub reads that of its function, or 0.
func slotOf(stub []byte, address uint64) uint64 {
	// jmp *offset(%rip), where the offset is from the next instruction.
	jump := []byte{0xff, 0x25}
	const length = 6
	at := bytes.Index(stub, jump)
	if at < 0 || at+length > len(stub) {
		return 0
	}
	offset := int32(binary.LittleEndian.Uint32(stub[at+len(jump):]))
	return address + uint64(at+length) + uint64(int64(offset))
}

// slotsOf returns the functions whose addresses the loader writes to places in memory.
func slotsOf(file *elf.File, functionAt func(address uint64) string) map[uint64]string {
	// A file that is linked statically has none of these symbols, and yet functions that are chosen at its start.
	imported, _ := file.DynamicSymbols()
	found := map[uint64]string{}
	for _, section := range file.Sections {
		if file.Machine != elf.EM_X86_64 || section.Type != elf.SHT_RELA || section.Flags&elf.SHF_ALLOC == 0 {
			continue
		}
		data, err := section.Data()
		if err != nil {
			continue
		}
		const size = 24 // that of elf.Rela64
		for ; len(data) >= size; data = data[size:] {
			slot, info, addend := binary.LittleEndian.Uint64(data), binary.LittleEndian.Uint64(data[8:]), binary.LittleEndian.Uint64(data[16:])
			switch elf.R_X86_64(elf.R_TYPE64(info)) {
			case elf.R_X86_64_JMP_SLOT, elf.R_X86_64_GLOB_DAT:
				// The symbol with number 0 is left out of the list.
				if index := elf.R_SYM64(info); index > 0 && uint64(index) <= uint64(len(imported)) {
					found[slot] = imported[index-1].Name
				}
			case elf.R_X86_64_IRELATIVE:
				found[slot] = functionAt(addend)
			}
		}
	}
	return found
}
