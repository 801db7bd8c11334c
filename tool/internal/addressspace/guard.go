// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

// Package addressspace ends a program with one line where the address space is too small for Go.
//
// Go's run-time library reserves more than half a gibibyte before main and prints a stack trace
// where it cannot. A constructor of C runs before that. Without cgo there is no such check.
package addressspace
