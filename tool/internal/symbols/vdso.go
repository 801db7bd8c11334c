// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"tcm/internal/text"
)

// vdsoName stands for the code that the kernel maps into every process, in place of a path.
const vdsoName = "[vdso]"

// errNoVDSO says that nothing is known of the code that the kernel mapped.
var errNoVDSO = errors.New("not the code of the running kernel")

// openVDSO reads that of the running kernel from the tool's own memory, if it is the one of the profile.
func openVDSO(buildID string) (*object, error) {
	content, err := ownVDSO()
	if err != nil {
		return nil, err
	}
	file, err := elf.NewFile(bytes.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("not an ELF file: %w", err)
	}
	if buildID == "" || buildIDOf(file) != buildID {
		return nil, errNoVDSO
	}
	return newObject(file, nil), nil
}

func ownVDSO() ([]byte, error) {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return nil, text.WithoutPath(err)
	}
	for line := range strings.Lines(string(maps)) {
		var start, end int64
		if !strings.HasSuffix(strings.TrimSpace(line), vdsoName) {
			continue
		}
		if _, err := fmt.Sscanf(line, "%x-%x", &start, &end); err != nil {
			return nil, errNoVDSO
		}
		memory, err := os.Open("/proc/self/mem")
		if err != nil {
			return nil, text.WithoutPath(err)
		}
		defer memory.Close()
		return io.ReadAll(io.NewSectionReader(memory, start, end-start))
	}
	return nil, errNoVDSO
}
