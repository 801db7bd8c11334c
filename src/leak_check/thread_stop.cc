// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "leak_check/thread_stop.h"

#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <string_view>

#include "base/message.h"
#include "system/alternate_stacks.h"
#include "system/clock.h"
#include "system/directory.h"
#include "system/futex.h"
#include "system/line_reader.h"
#include "system/number_text.h"
#include "system/own_memory.h"
#include "system/signal_mask.h"
#include "system/system_calls.h"
#include "unwind/readable_memory.h"

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
  // Acquire pairs with the release in ChooseSignal.
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

// Returns 0 for names that are not numbers.
pid_t ParseId(const char* name) {
  uint64_t id = 0;
  return ParseNumber(name, &id) ? static_cast<pid_t>(id) : 0;
}

// Finds the kernel's record of the locks that a thread holds. It lies in the thread's descriptor,
// at the same distance from the thread pointer for all threads. Returns false if the kernel does
// not tell.
bool FindRobustList(pid_t thread, uintptr_t* list) {
  void* head = nullptr;
  size_t bytes = 0;
  if (system_calls.get_robust_list(thread, &head, &bytes) != 0) return false;
  *list = reinterpret_cast<uintptr_t>(head);
  return true;
}

// Reads the lines of a file in /proc/self.
class ProcFile {
 public:
  explicit ProcFile(const Message& path) : reader_(buffer_, sizeof(buffer_), '\n') {
    char name[64] = {};
    std::memcpy(name, path.view().data(), std::min(path.view().size(), sizeof(name) - 1));
    opened_ = reader_.Open(name);
  }
  bool Next(std::string_view* line) { return opened_ && reader_.Next(line); }
  // Finds what follows `key` at the beginning of a line.
  bool Find(std::string_view key, std::string_view* value) {
    while (Next(value)) {
      if (!value->starts_with(key)) continue;
      value->remove_prefix(key.size());
      return true;
    }
    return false;
  }

 private:
  char buffer_[4096];
  LineReader reader_;
  bool opened_ = false;
};

bool HasSignal(uint64_t mask, int signal) { return signal > 0 && (mask >> (signal - 1) & 1) != 0; }

enum class Attention : uint8_t {
  kGone,  // has ended
  kDeaf,  // is stopped, or sleeps and blocks the signal
  kBusy,  // blocks the signal, perhaps for a moment, as libc does while it starts a thread
  kListens,
};

Attention AttentionOf(pid_t thread, int signal) {
  ProcFile status(Message() << "/proc/self/task/" << thread << "/status");
  std::string_view value;
  if (!status.Find("State:\t", &value)) return Attention::kGone;
  if (value.starts_with('Z') || value.starts_with('X')) return Attention::kGone;
  if (value.starts_with('T') || value.starts_with('t')) return Attention::kDeaf;
  const bool sleeps = value.starts_with('S');
  uint64_t blocked = 0;
  const bool blocks = status.Find("SigBlk:\t", &value) && ParseHexNumber(value, &blocked) &&
                      HasSignal(blocked, signal);
  if (!blocks) return Attention::kListens;
  return sleeps ? Attention::kDeaf : Attention::kBusy;
}

// Tells if the thread is in sigwait or one of its kin, and waits for the signal. The kernel does
// not show it as blocked meanwhile.
bool WaitsForSignal(pid_t thread, int signal) {
  ProcFile call(Message() << "/proc/self/task/" << thread << "/syscall");
  std::string_view line;
  uint64_t number = 0;
  if (!call.Next(&line) || !TakeNumber(&line, &number) || number != SYS_rt_sigtimedwait) {
    return false;
  }
  constexpr std::string_view kHexadecimal = " 0x";
  if (!line.starts_with(kHexadecimal)) return false;
  line.remove_prefix(kHexadecimal.size());
  uint64_t address = 0;
  uint64_t mask = 0;
  return TakeHexNumber(&line, &address) && CopyIfReadable(address, &mask, sizeof(mask)) &&
         HasSignal(mask, signal);
}

// Waits for threads that have just started.
void SleepForAMoment() {
  std::atomic<uint32_t> nobody_wakes{0};
  SleepWhile(nobody_wakes, 0, 1'000'000);
}

size_t CountThreads() {
  ProcFile status(Message() << "/proc/self/status");
  std::string_view text;
  uint64_t count = 0;
  return status.Find("Threads:\t", &text) && ParseNumber(text, &count) ? count : 0;
}

}  // namespace

uintptr_t OwnThreadPointer() { return reinterpret_cast<uintptr_t>(__builtin_thread_pointer()); }

void ThreadStop::ChooseSignal() {
  struct sigaction action;
  const bool is_own = signal_ != 0 && ::sigaction(signal_, nullptr, &action) == 0 &&
                      (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == OnSignal;
  // All threads are held at a time, so that no two may be on one stack.
  const int stack_flag = AlternateStacksAreUnfit() ? 0 : SA_ONSTACK;
  if (is_own && (action.sa_flags & SA_ONSTACK) == stack_flag) return;
  const int found = is_own ? signal_ : FindSignal();
  signal_ = 0;
  std::memset(&action, 0, sizeof(action));
  action.sa_sigaction = OnSignal;
  action.sa_flags = SA_SIGINFO | SA_RESTART | stack_flag;
  ::sigfillset(&action.sa_mask);
  // Release pairs with the acquire in OnSignal.
  installed.store(this, std::memory_order_release);
  if (found != 0 && ::sigaction(found, &action, nullptr) == 0) signal_ = found;
}

bool ThreadStop::Reserve() {
  if (threads_ != nullptr) return true;
  threads_ = static_cast<StoppedThread*>(MapSparse(kMostThreads * sizeof(StoppedThread)));
  return threads_ != nullptr;
}

void ThreadStop::Prepare() {
  const pid_t process = ::getpid();
  // Threads that were held when another one made this process are not here.
  if (process != process_) holding_.store(0, std::memory_order_relaxed);
  process_ = process;
  self_ = system_calls.gettid();
  count_ = 0;
  is_alone_ = false;
  ChooseSignal();
}

bool ThreadStop::Lists(pid_t thread) const {
  return std::any_of(threads_, threads_ + count_,
                     [=](const StoppedThread& listed) { return listed.id == thread; });
}

bool ThreadStop::Add(pid_t id) {
  if (Lists(id) || count_ == kMostThreads) return false;
  StoppedThread* thread = new (&threads_[count_]) StoppedThread;
  thread->id = id;
  own_bytes.Add(used_.Use(count_ * sizeof(StoppedThread), (count_ + 1) * sizeof(StoppedThread)));
  ++count_;
  return true;
}

int ThreadStop::AddThreads(size_t* seen) {
  int added = 0;
  *seen = 0;
  const bool read = ForEachName("/proc/self/task", [&](const char* name) {
    const pid_t id = ParseId(name);
    if (id != 0) ++*seen;
    if (id != 0 && id != self_ && Add(id)) ++added;
  });
  return read ? added : -1;
}

void ThreadStop::LookAt(StoppedThread& thread) {
  const pid_t id = thread.id;
  uintptr_t own = 0;
  uintptr_t list = 0;
  const bool told = FindRobustList(self_, &own) && FindRobustList(id, &list);
  if (told && own != 0 && list != 0) thread.thread_pointer = list - own + OwnThreadPointer();
  const Attention attention = AttentionOf(id, signal_);
  thread.young = attention == Attention::kBusy && told && list == 0;
  thread.busy = attention == Attention::kBusy;
  thread.listens = attention == Attention::kListens && !WaitsForSignal(id, signal_);
}

// All are looked at before the first one is held.
int ThreadStop::AskThreads() {
  for (size_t i = 0; i < count_; ++i) {
    if (!threads_[i].asked) LookAt(threads_[i]);
  }
  // Release pairs with the acquire in Hold and publishes the threads.
  listed_.store(static_cast<uint32_t>(count_), std::memory_order_release);
  int asked = 0;
  for (size_t i = 0; i < count_; ++i) {
    StoppedThread& thread = threads_[i];
    if (signal_ == 0 || thread.asked || !thread.listens) continue;
    thread.asked = true;
    if (system_calls.tgkill(process_, thread.id, signal_) != 0) continue;
    sent_.fetch_add(1, std::memory_order_relaxed);
    ++asked;
  }
  return asked;
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

void ThreadStop::GiveUpOnDeaf() {
  for (size_t i = 0; i < count_; ++i) {
    StoppedThread& thread = threads_[i];
    // Acquire pairs with the release in Hold.
    if (!thread.asked || thread.given_up || thread.held.load(std::memory_order_acquire) != 0) {
      continue;
    }
    if (AttentionOf(thread.id, signal_) == Attention::kListens) continue;
    thread.given_up = true;
    sent_.fetch_sub(1, std::memory_order_relaxed);
  }
}

// The kernel leaves out threads where one ends while it lists them, so that their number is
// compared as well.
bool ThreadStop::HoldMore(int64_t start, bool* changed, bool* complete) {
  size_t seen = 0;
  const int added = AddThreads(&seen);
  if (added < 0) return false;
  const int asked = AskThreads();
  if (!AwaitHeld(start + kFirstWait)) {
    GiveUpOnDeaf();
    AwaitHeld(start + kMostWait);
  }
  const bool wait_for_busy = MonotonicNanoseconds() - start < kBusyWait;
  const bool wait = std::any_of(threads_, threads_ + count_, [=](const StoppedThread& thread) {
    return thread.young || (thread.busy && wait_for_busy);
  });
  *changed = added > 0 || asked > 0;
  const size_t threads = CountThreads();
  *complete = !*changed && !wait && seen >= threads;
  is_alone_ = *complete && seen == 1 && threads == 1;
  return true;
}

// A thread that was not yet held may have started another one, so they are listed again until
// there is no new one.
bool ThreadStop::Stop() {
  BlockSignals(&mask_);
  Prepare();
  listed_.store(0, std::memory_order_relaxed);
  sent_.store(0, std::memory_order_relaxed);
  arrived_.store(0, std::memory_order_relaxed);
  // Release pairs with the acquire in Hold.
  stopping_.store(1, std::memory_order_release);
  const int64_t start = MonotonicNanoseconds();
  int64_t last_change = start;
  for (bool complete = false; !complete;) {
    bool changed = false;
    if (!HoldMore(start, &changed, &complete)) {
      Resume();
      return false;
    }
    const int64_t now = MonotonicNanoseconds();
    if (changed) last_change = now;
    if (now - last_change > kQuietWait || now - start > kMostWait) break;
    if (!complete && !changed) SleepForAMoment();
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
    if (holding == 0 || MonotonicNanoseconds() - start > kMostWait) break;
    SleepWhile(holding_, holding, 1'000'000);
  }
  system_calls.rt_sigprocmask(SIG_SETMASK, &mask_, nullptr);
}

void ThreadStop::Hold(const void* context, const void* frame) {
  const auto& interrupted = *static_cast<const ucontext_t*>(context);
  const pid_t self = system_calls.gettid();
  holding_.fetch_add(1, std::memory_order_relaxed);
  // Acquire pairs with the release in AskThreads.
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
      // Release pairs with the acquire in GiveUpOnDeaf and publishes what was written above.
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
