// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package doctor

// Numbers of system calls that package syscall does not name.
const (
	sysRseq       = 334
	sysMembarrier = 324
)
