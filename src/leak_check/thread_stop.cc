// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "leak_check/thread_stop.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <string_view>

#include "base/message.h"
#include "system/clock.h"
#include "system/futex.h"
#include "system/line_reader.h"
#include "system/signal_mask.h"
#include "system/system_calls.h"

namespace tcmalloc {
namespace {

// The object whose handler is installed.
constinit std::atomic<ThreadStop*> installed{nullptr};

uintptr_t StackPointerOf(const ucontext_t& context) {
#if defined(__x86_64__)
  return static_cast<uintptr_t>(context.uc_mcontext.gregs[REG_RSP]);
#elif defined(__aarch64__)
  return context.uc_mcontext.sp;
#endif
}

// Returns the end of what the kernel has put on the stack for a handler: the general registers, and
// the vector registers behind them.
uintptr_t EndOfRegisters(const ucontext_t& context) {
  const uintptr_t end = reinterpret_cast<uintptr_t>(&context + 1);
#if defined(__x86_64__)
  constexpr uintptr_t kVectorRegisters = 4096;
  const auto vectors = reinterpret_cast<uintptr_t>(context.uc_mcontext.fpregs);
  if (vectors >= reinterpret_cast<uintptr_t>(&context) && vectors - end < kVectorRegisters) {
    return vectors + kVectorRegisters;
  }
#endif
  return end;
}

void OnSignal(int /*signal*/, siginfo_t* /*info*/, void* context) {
  const int saved_errno = errno;
  // Acquire pairs with the release in Prepare.
  ThreadStop* stop = installed.load(std::memory_order_acquire);
  if (stop != nullptr) stop->Hold(context, __builtin_frame_address(0));
  errno = saved_errno;
}

// Returns a real-time signal without a handler, or 0.
int FindSignal() {
  for (int signal = SIGRTMAX - 1; signal > SIGRTMIN; --signal) {
    struct sigaction action;
    if (::sigaction(signal, nullptr, &action) == 0 && (action.sa_flags & SA_SIGINFO) == 0 &&
        action.sa_handler == SIG_DFL) {
      return signal;
    }
  }
  return 0;
}

pid_t ParseId(const char* name) {
  pid_t id = 0;
  for (; *name >= '0' && *name <= '9'; ++name) id = id * 10 + (*name - '0');
  return *name == '\0' ? id : 0;
}

// The kernel's record of the locks that a thread holds lies in the thread's descriptor, at the same
// distance from the thread pointer for all threads.
uintptr_t RobustList(pid_t thread) {
  void* head = nullptr;
  size_t bytes = 0;
  if (system_calls.get_robust_list(thread, &head, &bytes) != 0) return 0;
  return reinterpret_cast<uintptr_t>(head);
}

}  // namespace

uintptr_t OwnThreadPointer() { return reinterpret_cast<uintptr_t>(__builtin_thread_pointer()); }

bool ThreadStop::Prepare() {
  process_ = ::getpid();
  self_ = system_calls.gettid();
  count_ = 0;
  if (threads_ == nullptr) {
    void* memory =
        system_calls.mmap(nullptr, kMostThreads * sizeof(StoppedThread), PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return false;
    threads_ = static_cast<StoppedThread*>(memory);
  }
  if (signal_ == 0) {
    const int found = FindSignal();
    struct sigaction action;
    std::memset(&action, 0, sizeof(action));
    action.sa_sigaction = OnSignal;
    action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
    ::sigfillset(&action.sa_mask);
    // Release pairs with the acquire in OnSignal.
    installed.store(this, std::memory_order_release);
    if (found != 0 && ::sigaction(found, &action, nullptr) == 0) signal_ = found;
  }
  return true;
}

bool ThreadStop::Add(pid_t id) {
  for (size_t i = 0; i < count_; ++i) {
    if (threads_[i].id == id) return false;
  }
  if (count_ == kMostThreads) return false;
  StoppedThread* thread = new (&threads_[count_]) StoppedThread;
  thread->id = id;
  const uintptr_t own = RobustList(self_);
  const uintptr_t list = RobustList(id);
  if (own != 0 && list != 0) thread->thread_pointer = list - own + OwnThreadPointer();
  ++count_;
  // Release pairs with the acquire in Hold and publishes the thread.
  listed_.store(static_cast<uint32_t>(count_), std::memory_order_release);
  if (signal_ != 0 && system_calls.tgkill(process_, id, signal_) == 0) {
    sent_.fetch_add(1, std::memory_order_relaxed);
  }
  return true;
}

int ThreadStop::AddThreads() {
  const int fd = system_calls.open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
  if (fd < 0) return -1;
  int added = 0;
  alignas(dirent64) char buffer[4096];
  ssize_t got = 0;
  while ((got = system_calls.getdents64(fd, buffer, sizeof(buffer))) > 0) {
    for (ssize_t at = 0; at < got;) {
      const auto* entry = reinterpret_cast<const dirent64*>(buffer + at);
      const pid_t id = ParseId(entry->d_name);
      if (id != 0 && id != self_ && Add(id)) ++added;
      at += entry->d_reclen;
    }
  }
  system_calls.close(fd);
  return got < 0 ? -1 : added;
}

bool ThreadStop::AwaitHeld(int64_t deadline) {
  while (true) {
    // Acquire pairs with the release in Hold and makes the thread's state visible.
    const uint32_t arrived = arrived_.load(std::memory_order_acquire);
    if (arrived >= sent_.load(std::memory_order_relaxed)) return true;
    const int64_t left = deadline - MonotonicNanoseconds();
    if (left <= 0) return false;
    SleepWhile(arrived_, arrived, static_cast<uint64_t>(left));
  }
}

bool ThreadStop::BlocksSignal(pid_t thread) const {
  Message path;
  path << "/proc/self/task/" << thread << "/status";
  char name[64] = {};
  std::memcpy(name, path.view().data(), std::min(path.view().size(), sizeof(name) - 1));
  char buffer[4096];
  LineReader reader(buffer, sizeof(buffer), '\n');
  if (!reader.Open(name)) return false;
  constexpr std::string_view kBlocked = "SigBlk:\t";
  for (std::string_view line; reader.Next(&line);) {
    if (!line.starts_with(kBlocked)) continue;
    // Hexadecimal digits, the last of which has the signals 1 to 4.
    const size_t digit = static_cast<size_t>(signal_ - 1) / 4;
    if (digit >= line.size() - kBlocked.size()) return false;
    const char c = line[line.size() - 1 - digit];
    const int value = c <= '9' ? c - '0' : c - 'a' + 10;
    return (value >> ((signal_ - 1) % 4) & 1) != 0;
  }
  return false;
}

void ThreadStop::GiveUpOnBlocked() {
  for (size_t i = 0; i < count_; ++i) {
    // Acquire pairs with the release in Hold.
    if (threads_[i].held.load(std::memory_order_acquire) == 0 && BlocksSignal(threads_[i].id)) {
      sent_.fetch_sub(1, std::memory_order_relaxed);
    }
  }
}

// A thread that was not yet held may have started another one, so they are listed again until
// there is no new one.
bool ThreadStop::Stop() {
  constexpr int kMostRounds = 16;
  BlockSignals(&mask_);
  if (!Prepare()) {
    system_calls.rt_sigprocmask(SIG_SETMASK, &mask_, nullptr);
    return false;
  }
  listed_.store(0, std::memory_order_relaxed);
  sent_.store(0, std::memory_order_relaxed);
  arrived_.store(0, std::memory_order_relaxed);
  // Release pairs with the acquire in Hold.
  stopping_.store(1, std::memory_order_release);
  const int64_t start = MonotonicNanoseconds();
  for (int round = 0; round < kMostRounds; ++round) {
    const int added = AddThreads();
    if (added < 0) {
      Resume();
      return false;
    }
    if (added == 0) break;
    if (AwaitHeld(start + int64_t{kFirstWait})) continue;
    GiveUpOnBlocked();
    if (!AwaitHeld(start + int64_t{kMostWait})) break;
  }
  return true;
}

void ThreadStop::Resume() {
  // Release pairs with the acquire in Hold.
  stopping_.store(0, std::memory_order_release);
  WakeSleepers(stopping_);
  const int64_t start = MonotonicNanoseconds();
  while (true) {
    // Acquire pairs with the release in Hold.
    const uint32_t holding = holding_.load(std::memory_order_acquire);
    if (holding == 0 || MonotonicNanoseconds() - start > int64_t{kMostWait}) break;
    SleepWhile(holding_, holding, 1'000'000);
  }
  system_calls.rt_sigprocmask(SIG_SETMASK, &mask_, nullptr);
}

void ThreadStop::Hold(const void* context, const void* frame) {
  const auto& interrupted = *static_cast<const ucontext_t*>(context);
  const pid_t self = system_calls.gettid();
  holding_.fetch_add(1, std::memory_order_relaxed);
  // Acquire pairs with the release in Add.
  const uint32_t listed = listed_.load(std::memory_order_acquire);
  // Acquire pairs with the releases in Stop and Resume.
  if (stopping_.load(std::memory_order_acquire) != 0) {
    for (uint32_t i = 0; i < listed; ++i) {
      StoppedThread& thread = threads_[i];
      if (thread.id != self) continue;
      thread.stack_pointer = StackPointerOf(interrupted);
      thread.thread_pointer = OwnThreadPointer();
      thread.registers_begin = reinterpret_cast<uintptr_t>(frame);
      thread.registers_end = EndOfRegisters(interrupted);
      // Release pairs with the acquire in GiveUpOnBlocked and publishes what was written above.
      thread.held.store(1, std::memory_order_release);
      // Release pairs with the acquire in AwaitHeld.
      arrived_.fetch_add(1, std::memory_order_release);
      WakeSleepers(arrived_);
      // Acquire pairs with the release in Resume.
      while (stopping_.load(std::memory_order_acquire) != 0) SleepWhile(stopping_, 1);
      break;
    }
  }
  // Release pairs with the acquire in Resume.
  holding_.fetch_sub(1, std::memory_order_release);
  WakeSleepers(holding_);
}

}  // namespace tcmalloc
