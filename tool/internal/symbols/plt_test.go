// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"debug/elf"
	"encoding/binary"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

func (m maker) open(name string) *object {
	m.t.Helper()
	made, err := openObject("", m.path(name), "")
	if err != nil {
		m.t.Fatal(err)
	}
	return made
}

// Every stub has the name that objdump gives it, and none is taken for the function in front of the table, _init.
func TestStubs(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("stubs have names on x86-64")
	}
	named := regexp.MustCompile(`(?m)^([0-9a-f]+) <([^@>]+)\S*@plt>:$`)
	// The addresses of functions are filled in at their first call or at the start of the program; both with and without
	// marks at places to which jumps may lead.
	for _, options := range [][]string{
		{"-Wl,-z,lazy"}, {"-Wl,-z,now"}, {"-Wl,-z,lazy,-z,ibtplt"}, {"-Wl,-z,now,-z,ibtplt"}, {"-Wl,-z,lazy", "-s"},
	} {
		made := newMaker(t)
		made.run("c++", append([]string{"-O2", "program.cc", "-o", "program"}, options...)...)
		file := made.open("program")
		stubs := named.FindAllStringSubmatch(made.run("objdump", "-d", "program"), -1)
		if len(stubs) == 0 {
			t.Errorf("%v: no stubs", options)
		}
		for _, stub := range stubs {
			start, err := strconv.ParseUint(stub[1], 16, 64)
			if err != nil {
				t.Fatal(err)
			}
			for _, address := range []uint64{start, start + leastStub - 1} {
				if got := file.symbolAt(address); got != stub[2]+stubSuffix {
					t.Errorf("%v: %#x is %q, want %s", options, address, got, stub[2]+stubSuffix)
				}
			}
		}
	}
}

// table returns the section of a program with its stubs.
func (m maker) table(name string) *elf.Section {
	m.t.Helper()
	file, err := openELF(m.path(name))
	if err != nil {
		m.t.Fatal(err)
	}
	defer file.Close()
	section := file.Section(".plt")
	if section == nil {
		m.t.Skip("the linker makes no stubs")
	}
	return section
}

// A program that is linked statically chooses functions of libc at its start, and calls them by stubs.
func TestStubsOfChosenFunctions(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("stubs have names on x86-64")
	}
	made := newMaker(t)
	made.run("c++", "-O2", "-static", "-no-pie", "program.cc", "-o", "program")
	table, file := made.table("program"), made.open("program")
	for address := table.Addr; address < table.Addr+table.Size; address += leastStub {
		if got := file.symbolAt(address); !strings.HasSuffix(got, stubSuffix) {
			t.Errorf("%#x is %q", address, got)
		}
	}
}

// Stubs of another processor have one name for all.
func TestStubsOfOtherProcessors(t *testing.T) {
	made := newMaker(t)
	made.run("c++", "-O2", "-Wl,-z,lazy", "program.cc", "-o", "program")
	content, err := os.ReadFile(made.path("program"))
	if err != nil {
		t.Fatal(err)
	}
	const machine = 18 // the offset of elf.Header64's field
	binary.LittleEndian.PutUint16(content[machine:], uint16(elf.EM_RISCV))
	if err := os.WriteFile(made.path("other"), content, 0o755); err != nil {
		t.Fatal(err)
	}
	table, file := made.table("other"), made.open("other")
	for _, address := range []uint64{table.Addr, table.Addr + table.Size - 1} {
		if got := file.symbolAt(address); got != otherStubs {
			t.Errorf("%#x is %q", address, got)
		}
	}
}
