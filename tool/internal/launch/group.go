// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package launch

import (
	"os/exec"
	"syscall"
	"time"
)

// RunGroup runs a command, which exec.CommandContext has made, in a process group of its own. The whole group ends with the
// command and with its context.
func RunGroup(command *exec.Cmd) error {
	command.Cancel = func() error { return killGroup(command.Process.Pid) }
	if err := startGroup(command); err != nil {
		return err
	}
	return waitGroup(command)
}

func startGroup(command *exec.Cmd) error {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// A grandchild in another group must not hold up the end through its output.
	command.WaitDelay = time.Second
	return command.Start()
}

// waitGroup waits for the command and ends what it has left running.
func waitGroup(command *exec.Cmd) error {
	awaitEnd(command.Process.Pid)
	// The number is that of the group as long as nobody has reaped the command.
	_ = killGroup(command.Process.Pid)
	return command.Wait()
}

// awaitEnd waits for the end of a child without reaping it.
func awaitEnd(pid int) {
	const byNumber = 1 // P_PID
	for {
		_, _, failed := syscall.Syscall6(syscall.SYS_WAITID, byNumber, uintptr(pid), 0, syscall.WEXITED|syscall.WNOWAIT, 0, 0)
		if failed != syscall.EINTR {
			return
		}
	}
}

func killGroup(leader int) error { return syscall.Kill(-leader, syscall.SIGKILL) }
