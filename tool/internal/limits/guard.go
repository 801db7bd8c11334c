// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

// Package limits ends a program with one line where Go cannot run within the limits of the process.
//
// Go's run-time library reserves more than half a gibibyte before main, opens two descriptors with the
// first file, and prints a stack trace where it cannot. Constructors of C run before that. Without cgo
// there is no such check.
package limits
