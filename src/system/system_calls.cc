// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "system/system_calls.h"

#include <fcntl.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "base/attributes.h"
#include "system/vdso.h"

extern "C" void* __sbrk(intptr_t increment) noexcept;
#if defined(__GLIBC__)
extern "C" int __register_atfork(void (*prepare)(), void (*parent)(), void (*child)(),
                                 void* object) noexcept;
extern "C" [[gnu::visibility("hidden")]] void* const __dso_handle;
// Programs that are linked statically have none.
[[gnu::weak]] extern ElfW(Dyn) _DYNAMIC[];
#endif

namespace tcmalloc {
namespace {

// Available since Linux 5.10, with one number on all architectures; older headers do not have it.
constexpr long kSysProcessMadvise = 440;

void* ToPointer(long result) { return reinterpret_cast<void*>(result); }

void* Mmap(void* address, size_t bytes, int protection, int flags, int fd, off_t offset) {
  return ToPointer(::syscall(SYS_mmap, address, bytes, protection, flags, fd, offset));
}

int Munmap(void* start, size_t bytes) {
  return static_cast<int>(::syscall(SYS_munmap, start, bytes));
}

int Madvise(void* start, size_t bytes, int advice) {
  return static_cast<int>(::syscall(SYS_madvise, start, bytes, advice));
}

ssize_t ProcessMadvise(int process, const iovec* ranges, size_t n, int advice, unsigned flags) {
  return ::syscall(kSysProcessMadvise, process, ranges, n, advice, flags);
}

int Mprotect(void* start, size_t bytes, int protection) {
  return static_cast<int>(::syscall(SYS_mprotect, start, bytes, protection));
}

void* Mremap(void* start, size_t old_bytes, size_t new_bytes, int flags, void* new_start) {
  return ToPointer(::syscall(SYS_mremap, start, old_bytes, new_bytes, flags, new_start));
}

int Prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d) {
  return static_cast<int>(::syscall(SYS_prctl, option, a, b, c, d));
}

int Open(const char* path, int flags, mode_t mode) {
  return static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

ssize_t Read(int fd, void* buffer, size_t bytes) { return ::syscall(SYS_read, fd, buffer, bytes); }

ssize_t Pread(int fd, void* buffer, size_t bytes, off_t offset) {
  return ::syscall(SYS_pread64, fd, buffer, bytes, offset);
}

ssize_t Getdents64(int fd, void* buffer, size_t bytes) {
  return ::syscall(SYS_getdents64, fd, buffer, bytes);
}

ssize_t Write(int fd, const void* bytes, size_t count) {
  return ::syscall(SYS_write, fd, bytes, count);
}

int Rename(const char* from, const char* to) {
  return static_cast<int>(::syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}

int Lstat(const char* path, struct stat* information) {
  return static_cast<int>(
      ::syscall(SYS_newfstatat, AT_FDCWD, path, information, AT_SYMLINK_NOFOLLOW));
}

int Close(int fd) { return static_cast<int>(::syscall(SYS_close, fd)); }

int Unlink(const char* path) {
  return static_cast<int>(::syscall(SYS_unlinkat, AT_FDCWD, path, 0));
}

int Ftruncate(int fd, off_t bytes) { return static_cast<int>(::syscall(SYS_ftruncate, fd, bytes)); }

int Fstatfs(int fd, struct statfs* information) {
  return static_cast<int>(::syscall(SYS_fstatfs, fd, information));
}

int SchedGetaffinity(pid_t thread, size_t bytes, void* mask) {
  return static_cast<int>(::syscall(SYS_sched_getaffinity, thread, bytes, mask));
}

int Getrlimit(int resource, rlimit* limit) {
  return static_cast<int>(::syscall(SYS_prlimit64, 0, resource, nullptr, limit));
}

long Futex(uint32_t* word, int operation, uint32_t value, const timespec* timeout) {
  return ::syscall(SYS_futex, word, operation, value, timeout, nullptr, 0);
}

#if defined(__x86_64__)
constexpr const char* kVdsoClock = "__vdso_clock_gettime";
#else
constexpr const char* kVdsoClock = "__kernel_clock_gettime";
#endif

using VdsoClock = int (*)(clockid_t clock, timespec* time);

// Returns the kernel's function for the clock, which costs a fraction of a system call, or 0. It is
// searched at the first call. libc's own function is not used, because a program may have replaced
// it.
uintptr_t VdsoClockAddress() {
  constexpr uintptr_t kUnknown = 1;
  static constinit std::atomic<uintptr_t> known{kUnknown};
  uintptr_t address = known.load(std::memory_order_relaxed);
  if (TCMALLOC_LIKELY(address != kUnknown)) return address;
  const uintptr_t image = ::getauxval(AT_SYSINFO_EHDR);
  address = image != 0 ? FindVdsoFunction(image, kVdsoClock) : 0;
  known.store(address, std::memory_order_relaxed);
  return address;
}

int ClockGettime(clockid_t clock, timespec* time) {
  const auto vdso = reinterpret_cast<VdsoClock>(VdsoClockAddress());
  if (TCMALLOC_LIKELY(vdso != nullptr && vdso(clock, time) == 0)) return 0;
  return static_cast<int>(::syscall(SYS_clock_gettime, clock, time));
}

int Rseq(void* area, uint32_t bytes, int flags, uint32_t signature) {
  return static_cast<int>(::syscall(SYS_rseq, area, bytes, flags, signature));
}

int Membarrier(int command, unsigned flags, int cpu) {
  return static_cast<int>(::syscall(SYS_membarrier, command, flags, cpu));
}

int RtSigaction(int signal, const SignalAction* action, SignalAction* old_action) {
  return static_cast<int>(
      ::syscall(SYS_rt_sigaction, signal, action, old_action, sizeof(action->mask)));
}

int RtSigprocmask(int how, const uint64_t* mask, uint64_t* old_mask) {
  return static_cast<int>(::syscall(SYS_rt_sigprocmask, how, mask, old_mask, sizeof(*mask)));
}

int Tgkill(pid_t process, pid_t thread, int signal) {
  return static_cast<int>(::syscall(SYS_tgkill, process, thread, signal));
}

int GetRobustList(pid_t thread, void** head, size_t* bytes) {
  return static_cast<int>(::syscall(SYS_get_robust_list, thread, head, bytes));
}

// Makes the system call. The child returns from it on another stack, which has nothing of this
// function's frame to return to.
long CloneOnStack(unsigned long flags, void* stack_end, void (*body)(void*), void* argument) {
#if defined(__x86_64__)
  long result = SYS_clone;
  asm volatile(
      "xorl %%edx, %%edx\n\t"
      "xorl %%r10d, %%r10d\n\t"
      "xorl %%r8d, %%r8d\n\t"
      "syscall\n\t"
      "testq %%rax, %%rax\n\t"
      "jnz 1f\n\t"
      "movq %[argument], %%rdi\n\t"
      "callq *%[body]\n\t"
      "xorl %%edi, %%edi\n\t"
      "movl %[exit], %%eax\n\t"
      "syscall\n\t"
      "ud2\n"
      "1:"
      : "+a"(result), "+D"(flags), "+S"(stack_end)
      : [body] "r"(body), [argument] "r"(argument), [exit] "i"(SYS_exit)
      : "rcx", "rdx", "r8", "r10", "r11", "memory", "cc");
  return result;
#elif defined(__aarch64__)
  register long number asm("x8") = SYS_clone;
  register long result asm("x0") = static_cast<long>(flags);
  register void* stack asm("x1") = stack_end;
  asm volatile(
      "mov x2, xzr\n\t"
      "mov x3, xzr\n\t"
      "mov x4, xzr\n\t"
      "svc #0\n\t"
      "cbnz x0, 1f\n\t"
      "mov x0, %[argument]\n\t"
      "blr %[body]\n\t"
      "mov x0, xzr\n\t"
      "mov x8, %[exit]\n\t"
      "svc #0\n\t"
      "udf #0\n"
      "1:"
      : "+r"(result), "+r"(stack)
      : "r"(number), [body] "r"(body), [argument] "r"(argument), [exit] "i"(SYS_exit)
      : "x2", "x3", "x4", "memory", "cc");
  return result;
#endif
}

// libc's clone is one that sanitizers interpose, for children that run their code.
pid_t Clone(unsigned long flags, void* stack_end, void (*body)(void*), void* argument) {
  const long result = CloneOnStack(flags, stack_end, body, argument);
  if (result >= 0) return static_cast<pid_t>(result);
  errno = static_cast<int>(-result);
  return -1;
}

pid_t Wait4(pid_t child, int* status, int options) {
  return static_cast<pid_t>(::syscall(SYS_wait4, child, status, options, nullptr));
}

void Exit(int status) { ::syscall(SYS_exit, status); }

pid_t Gettid() { return static_cast<pid_t>(::syscall(SYS_gettid)); }

// Calls libc's sbrk, not the kernel's brk: libc remembers the break, and the program may call sbrk
// too. Uses the name that is libc's alone, because the library has a sbrk of its own, which calls
// hooks.
#if defined(__GLIBC__)
// Returns true if this code stays where it is until the process ends: in a program, and in a
// library that is never unloaded. A plugin may have it linked in as well.
bool StaysLoaded() {
  if (_DYNAMIC == nullptr) return true;
  for (const ElfW(Dyn)* entry = _DYNAMIC; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_FLAGS_1) return (entry->d_un.d_val & (DF_1_NODELETE | DF_1_PIE)) != 0;
  }
  return false;
}

// glibc's own registers handlers for the object that calls it, and forgets them when the
// destructors of that object run at exit: those of others run later, and other threads until the
// end. Handlers of no object stay.
int PthreadAtfork(void (*prepare)(), void (*parent)(), void (*child)()) {
  void* const object = StaysLoaded() ? nullptr : __dso_handle;
  return ::__register_atfork(prepare, parent, child, object);
}
#else
int PthreadAtfork(void (*prepare)(), void (*parent)(), void (*child)()) {
  return ::pthread_atfork(prepare, parent, child);
}
#endif

constexpr SystemCalls kReal = {
    .mmap = Mmap,
    .munmap = Munmap,
    .madvise = Madvise,
    .process_madvise = ProcessMadvise,
    .mprotect = Mprotect,
    .mremap = Mremap,
    .sbrk = ::__sbrk,
    .prctl = Prctl,
    .open = Open,
    .read = Read,
    .pread = Pread,
    .getdents64 = Getdents64,
    .close = Close,
    .write = Write,
    .unlink = Unlink,
    .rename = Rename,
    .lstat = Lstat,
    .ftruncate = Ftruncate,
    .fstatfs = Fstatfs,
    .sched_getaffinity = SchedGetaffinity,
    .getrlimit = Getrlimit,
    .futex = Futex,
    .clock_gettime = ClockGettime,
    .rseq = Rseq,
    .membarrier = Membarrier,
    .rt_sigaction = RtSigaction,
    .rt_sigprocmask = RtSigprocmask,
    .tgkill = Tgkill,
    .get_robust_list = GetRobustList,
    .clone = Clone,
    .wait4 = Wait4,
    .exit = Exit,
    .gettid = Gettid,
    .getauxval = ::getauxval,
    .pthread_key_create = ::pthread_key_create,
    .pthread_setspecific = ::pthread_setspecific,
    .pthread_create = ::pthread_create,
    .pthread_atfork = PthreadAtfork,
};

}  // namespace

constinit const SystemCalls real_system_calls = kReal;

// Weak, so that a library built for fault injection can start with a table of its own.
__attribute__((weak)) constinit SystemCalls system_calls = kReal;

}  // namespace tcmalloc
