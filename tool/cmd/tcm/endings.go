// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"unsafe"

	"tcm/internal/runfolder"
)

// endings are the signals that call a command off, with the programs that it runs.
var endings = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}

// heeded returns the endings that are not ignored, of which Go tells for all but SIGTERM. To watch a signal ends that it
// is ignored, and tcm run hands that state on to the program.
func heeded() []os.Signal { return slices.DeleteFunc(slices.Clone(endings), signal.Ignored) }

// removeAtEnd returns a function that removes the folder of a run. The endings do so as well, and then end the process.
// What tcm_launch kept blocked until the process could heed it was meant for the program: the context took it, and no
// report looks at that.
func removeAtEnd(folder *runfolder.Folder) (remove func()) {
	called := make(chan os.Signal, 1)
	signal.Notify(called, heeded()...)
	// Whoever locks it ends the process.
	var ending sync.Mutex
	go func() {
		one := (<-called).(syscall.Signal)
		ending.Lock()
		folder.Remove()
		dieBy(one)
	}()
	return func() {
		ending.Lock()
		folder.Remove()
	}
}

// exceptClosedPipe leaves out errors which say that a reader has gone away, and which nobody needs to be told of.
func exceptClosedPipe(err error) error {
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		var left []error
		for _, one := range several.Unwrap() {
			left = append(left, exceptClosedPipe(one))
		}
		return errors.Join(left...)
	}
	if errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return err
}

// dieBy ends the process by a signal that may be blocked since its start.
func dieBy(one syscall.Signal) {
	const unblock = 1 // SIG_UNBLOCK
	runtime.LockOSThread()
	set := uint64(1) << (one - 1)
	syscall.RawSyscall6(syscall.SYS_RT_SIGPROCMASK, unblock, uintptr(unsafe.Pointer(&set)), 0, unsafe.Sizeof(set), 0, 0)
	signal.Reset(one)
	_ = syscall.Kill(os.Getpid(), one)
	select {}
}
