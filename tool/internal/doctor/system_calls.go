// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// patience ends helper programs that hang.
const patience = 10 * time.Second

// callRseq gives the kernel an area of no size, which it never takes.
func callRseq() error {
	if _, _, errno := syscall.RawSyscall6(sysRseq, 0, 0, 0, 0, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

func queryMembarrier() (uint64, error) {
	const query = 0
	commands, _, errno := syscall.RawSyscall(sysMembarrier, query, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return uint64(commands), nil
}

// libcVersion asks the system's libc for its name; empty where it has no answer.
func libcVersion() string {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	output, err := exec.CommandContext(ctx, "getconf", "GNU_LIBC_VERSION").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(output))
}
