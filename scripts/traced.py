# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Programs that stop where they exit, while their memory is still there to be looked at."""

import ctypes
import os

PTRACE_EVENT_EXIT = 6
TRACE_EXIT = 0x40  # PTRACE_O_TRACEEXIT
TRACE_PROCESSES = 0x02 | 0x04 | 0x10  # PTRACE_O_TRACEFORK, TRACEVFORK and TRACEEXEC
_KILL_AT_EXIT = 0x100000  # PTRACE_O_EXITKILL
_TRACE_ME = 0
_CONTINUE = 7
_SET_OPTIONS = 0x4200

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


def start(command, environment, options, quiet=False):
    """Starts a program that stops before its first instruction. Returns None if it cannot be traced or started.

    Its input and output are thrown away if it is quiet.
    """
    child = os.fork()
    if child == 0:
        try:
            if quiet:
                nothing = os.open("/dev/null", os.O_RDWR)
                for descriptor in range(3):
                    os.dup2(nothing, descriptor)
            if _libc.ptrace(_TRACE_ME, 0, None, None) == 0:
                os.execvpe(command[0], command, environment)
        finally:
            os._exit(127)
    _, status = os.waitpid(child, 0)
    if not os.WIFSTOPPED(status):
        return None
    _libc.ptrace(_SET_OPTIONS, child, None, options | _KILL_AT_EXIT)
    return child


def go_on(process, signal_number=0):
    """Lets a stopped process go on, with a signal unless that is 0. Returns false if there is no such process."""
    return _libc.ptrace(_CONTINUE, process, None, signal_number) == 0
