// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

// Package temporary makes temporary files and folders. Its errors name the folder that takes none, and the variable that can
// name another one.
package temporary

import (
	"fmt"
	"os"

	"tcm/internal/text"
)

// Folder makes a folder whose name begins with the prefix, and that the caller removes. use is what it is for.
func Folder(prefix, use string) (string, error) {
	path, err := os.MkdirTemp("", prefix)
	if err != nil {
		return "", failed("folder", use, err)
	}
	return path, nil
}

// File makes an open file whose name begins with the prefix, and that the caller closes and removes. use is what it is for.
func File(prefix, use string) (*os.File, error) {
	file, err := os.CreateTemp("", prefix)
	if err != nil {
		return nil, failed("file", use, err)
	}
	return file, nil
}

func failed(kind, use string, err error) error {
	return fmt.Errorf("cannot make a %s for %s in %s: %w; TMPDIR can name another folder", kind, use, os.TempDir(), text.WithoutPath(err))
}
