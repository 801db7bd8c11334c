#!/usr/bin/env python3
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Checks that src/ calls no function of libc at which a thread may be cancelled.

malloc and free are no points of cancellation: a thread that ends in the middle of one leaves the
heap in disorder. The allocator makes its system calls by libc's syscall, which is none either.
"""

import re
import sys
from pathlib import Path

import repository

# pthreads(7): functions that must be, and that may be, points of cancellation.
POINTS = frozenset(
    """
    accept accept4 aio_suspend clock_nanosleep close connect copy_file_range creat epoll_pwait
    epoll_wait fcntl fdatasync fsync getmsg getpmsg lockf mq_receive mq_send mq_timedreceive
    mq_timedsend msgrcv msgsnd msync nanosleep open open64 openat openat64 pause poll ppoll pread
    pread64 preadv preadv2 pselect pthread_cond_clockwait pthread_cond_timedwait pthread_cond_wait
    pthread_join pthread_testcancel pthread_timedjoin_np putmsg putpmsg pwrite pwrite64 pwritev
    pwritev2 read readv recv recvfrom recvmmsg recvmsg select sem_clockwait sem_timedwait sem_wait
    send sendfile sendmmsg sendmsg sendto sigpause sigsuspend sigtimedwait sigwait sigwaitinfo
    sleep splice system tcdrain tee usleep vmsplice wait wait3 wait4 waitid waitpid write writev
    access asctime catclose catgets catopen chmod chown closedir closelog ctermid ctime dlclose
    dlopen dprintf endgrent endhostent endnetent endprotoent endpwent endservent endutxent faccessat
    fchmod fchmodat fchown fchownat fclose fflush fgetc fgetpos fgets fgetwc fgetws fmtmsg fopen
    fopen64 fpathconf fprintf fputc fputs fputwc fputws fread freopen fscanf fseek fseeko fsetpos
    fstat fstatat ftell ftello ftw futimens fwprintf fwrite fwscanf getaddrinfo getc getc_unlocked
    getchar getchar_unlocked getcwd getdate getdelim getgrent getgrgid getgrgid_r getgrnam
    getgrnam_r gethostent gethostid gethostname getline getlogin getlogin_r getnameinfo getnetent
    getopt getprotoent getpwent getpwnam getpwnam_r getpwuid getpwuid_r gets getservent getutxent
    getwc getwchar glob iconv_close iconv_open ioctl link linkat lio_listio localtime localtime_r
    lseek lstat mkdir mkdirat mkdtemp mkfifo mkfifoat mknod mknodat mkstemp mktime nftw opendir
    openlog pathconf pclose perror popen posix_fadvise posix_fallocate posix_madvise posix_openpt
    posix_spawn posix_spawnp posix_trace_event printf psiginfo psignal pthread_rwlock_rdlock
    pthread_rwlock_timedrdlock pthread_rwlock_timedwrlock pthread_rwlock_wrlock ptsname putc
    putc_unlocked putchar putchar_unlocked puts pututxline putwc putwchar readdir readdir_r readlink
    readlinkat remove rename renameat rewind rewinddir scanf seekdir semop setgrent sethostent
    setnetent setprotoent setpwent setservent setutxent stat statvfs strerror
    strftime symlink symlinkat sync syslog tmpfile tmpnam ttyname ttyname_r tzset ungetc ungetwc
    unlink unlinkat utime utimensat utimes vdprintf vfprintf vfwprintf vprintf vsyslog vwprintf
    wcsftime wordexp wprintf wscanf
    """.split()
)

# Calls at which no thread ends.
PERMITTED = {
    # The code around them has turned cancellation off.
    ("src/upkeep/background_thread.cc", "pthread_join"),
    ("src/override/c_entry_points.cc", "fwrite"),
    ("src/leak_check/leak_checker.cc", "fflush"),
    # Of a library that is loaded already they open no file.
    ("src/system/cxx_library.h", "dlopen"),
    ("src/system/cxx_library.h", "dlclose"),
}

TEXT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)
# A name in the global namespace or std, in a call or, qualified, for a pointer to the function.
# Members of objects and of other classes have names of their own.
CALL = re.compile(r"(?<![\w.>:])(?:std\s*::\s*|::\s*)?([a-z]\w*)\s*\(")
REFERENCE = re.compile(r"(?<![\w>:])(?:std)?::([a-z]\w*)\b")


def without_text(source: str) -> str:
    """The source without comments and strings, each line where it was."""
    return TEXT.sub(lambda match: "\n" * match[0].count("\n"), source)


def points_in(line: str) -> set[str]:
    return {match[1] for pattern in (CALL, REFERENCE) for match in pattern.finditer(line)} & POINTS


def check(root: Path) -> list[str]:
    complaints = []
    used = set()
    for path in repository.files(root):
        if path.parts[0] != "src" or path.suffix not in {".h", ".cc"}:
            continue
        source = without_text((root / path).read_text())
        for number, line in enumerate(source.splitlines(), start=1):
            for name in sorted(points_in(line)):
                if (str(path), name) in PERMITTED:
                    used.add((str(path), name))
                else:
                    complaints.append(f"{path}:{number}: {name} may end the thread inside malloc")
    complaints += [
        f"{path}: {name} is permitted and not called"
        for path, name in sorted(PERMITTED - used)
        if (root / path).exists()
    ]
    return complaints


if __name__ == "__main__":
    sys.exit(repository.run_check(check, __doc__))
