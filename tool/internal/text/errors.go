// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package text

import (
	"errors"
	"os"
)

// WithoutPath leaves out the path of an error, for messages that name the file.
func WithoutPath(err error) error {
	var failed *os.PathError
	if errors.As(err, &failed) {
		return failed.Err
	}
	return err
}
