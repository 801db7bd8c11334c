// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The profiler stands before libc's functions that set signal handlers. Those of other signals act
// as libc's own; for its signal they do what the program sees of libc's, and leave it to the
// profiler. A program that is linked with the library calls both.

#include <dlfcn.h>
#include <gperftools/profiler.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

// libc's own names: the kernel's action, and a function that its header hides.
extern "C" int __sigaction(int signal, const struct sigaction* action, struct sigaction* old);
extern "C" sighandler_t bsd_signal(int signal, sighandler_t handler) noexcept;

namespace {

using SetHandler = sighandler_t (*)(int, sighandler_t);
using Interrupt = int (*)(int, int);
using Ignore = int (*)(int);
using Action = struct sigaction;
using ReadAction = int (*)(int, const Action*, Action*);

constexpr const char* kSetHandlers[] = {"signal",        "bsd_signal",  "ssignal",
                                        "__sysv_signal", "sysv_signal", "sigset"};

// Of no effect, and told by some kernels: libc returns from handlers by itself, and System V's
// functions name the default.
constexpr int kMeaningless = 0x04000000 | SA_INTERRUPT;

int failures = 0;
volatile sig_atomic_t heard = 0;

void Hear(int) { heard = heard + 1; }
void HearOther(int) {}

void Expect(bool holds, const std::string& what) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what.c_str());
  ++failures;
}

// The functions of the library, which the program is linked with, or those of libc.
struct Functions {
  explicit Functions(void* handle) : handle_(handle) {
    for (const char* name : kSetHandlers) set_handler.push_back(Find<SetHandler>(name));
    interrupt = Find<Interrupt>("siginterrupt");
    ignore = Find<Ignore>("sigignore");
  }

  std::vector<SetHandler> set_handler;
  Interrupt interrupt = nullptr;
  Ignore ignore = nullptr;

 private:
  template <typename Function>
  Function Find(const char* name) const {
    void* found = dlsym(handle_, name);
    Expect(found != nullptr, std::string(name) + " is missing");
    return reinterpret_cast<Function>(found);
  }

  void* handle_;
};

struct Outcome {
  uintptr_t returned = 0;
  int error = 0;
  uintptr_t handler = 0;
  int flags = 0;
  bool blocked_in_handler = false;
  bool blocked = false;

  bool operator==(const Outcome&) const = default;
  std::string Text() const {
    char text[160];
    std::snprintf(text, sizeof(text), "%lx errno %d, %lx flags %x, %d, %d",
                  static_cast<unsigned long>(returned), error, static_cast<unsigned long>(handler),
                  static_cast<unsigned>(flags), static_cast<int>(blocked_in_handler),
                  static_cast<int>(blocked));
    return text;
  }
};

struct Case {
  int number;
  sighandler_t handler;
  bool blocked;  // before the call
  int interrupts;
};

sigset_t SetOf(int number) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, number);
  return set;
}

// Calls a function after a handler of another kind was set, and looks at what `read` finds then.
template <typename Call>
Outcome OutcomeOf(const Functions& functions, const Case& one, ReadAction read, Call call) {
  Action before = {};
  before.sa_handler = HearOther;
  before.sa_flags = SA_NODEFER;
  sigaction(one.number, &before, nullptr);
  functions.interrupt(one.number, one.interrupts);
  const sigset_t set = SetOf(one.number);
  sigprocmask(one.blocked ? SIG_BLOCK : SIG_UNBLOCK, &set, nullptr);
  Outcome outcome;
  errno = 0;
  outcome.returned = call();
  outcome.error = errno;
  Action after = {};
  read(one.number, nullptr, &after);
  outcome.handler = reinterpret_cast<uintptr_t>(after.sa_handler);
  outcome.flags = after.sa_flags & ~kMeaningless;
  outcome.blocked_in_handler = sigismember(&after.sa_mask, one.number) == 1;
  sigset_t mask;
  sigprocmask(SIG_UNBLOCK, &set, &mask);
  outcome.blocked = sigismember(&mask, one.number) == 1;
  return outcome;
}

Outcome OutcomeOfSet(const Functions& functions, size_t which, const Case& one, ReadAction read) {
  return OutcomeOf(functions, one, read, [&] {
    return reinterpret_cast<uintptr_t>(functions.set_handler[which](one.number, one.handler));
  });
}

Outcome OutcomeOfIgnore(const Functions& functions, const Case& one, ReadAction read) {
  return OutcomeOf(functions, one, read,
                   [&] { return static_cast<uintptr_t>(functions.ignore(one.number)); });
}

// Compares what the library does for `ours` with what libc does for SIGUSR1 or the same number.
void CompareWithLibc(const Functions& library, const Functions& libc, int ours, ReadAction read) {
  const int theirs = ours == SIGPROF ? SIGUSR1 : ours;
  for (const sighandler_t handler : {SIG_DFL, SIG_IGN, SIG_ERR, SIG_HOLD, sighandler_t{Hear}}) {
    for (const bool blocked : {false, true}) {
      for (const int interrupts : {0, 1}) {
        const Case our_case = {ours, handler, blocked, interrupts};
        const Case their_case = {theirs, handler, blocked, interrupts};
        const std::string what = std::to_string(ours) + ": ";
        for (size_t i = 0; i < std::size(kSetHandlers); ++i) {
          // Only sigset knows this one; it would be an address elsewhere.
          if (handler == SIG_HOLD && std::strcmp(kSetHandlers[i], "sigset") != 0) continue;
          const Outcome had = OutcomeOfSet(library, i, our_case, read);
          const Outcome wanted = OutcomeOfSet(libc, i, their_case, __sigaction);
          Expect(had == wanted,
                 kSetHandlers[i] + (" " + what) + had.Text() + ", libc: " + wanted.Text());
        }
        const Outcome had = OutcomeOfIgnore(library, our_case, read);
        const Outcome wanted = OutcomeOfIgnore(libc, their_case, __sigaction);
        Expect(had == wanted, "sigignore " + what + had.Text() + ", libc: " + wanted.Text());
      }
    }
  }
}

sighandler_t KernelHandler() {
  Action action = {};
  __sigaction(SIGPROF, nullptr, &action);
  return action.sa_handler;
}

void CheckThatTheProfilerKeepsItsSignal(const Functions& library, const Functions& libc) {
  const std::string path = "/tmp/signal_functions." + std::to_string(getpid());
  if (ProfilerStart(path.c_str()) == 0) return Expect(false, "no profile");
  const sighandler_t profiler = KernelHandler();
  CompareWithLibc(library, libc, SIGPROF, sigaction);
  for (size_t i = 0; i < std::size(kSetHandlers); ++i) {
    library.set_handler[i](SIGPROF, SIG_DFL);
    Expect(KernelHandler() == profiler, kSetHandlers[i] + std::string(" takes the signal"));
  }
  library.ignore(SIGPROF);
  library.interrupt(SIGPROF, 1);
  Expect(KernelHandler() == profiler, "the signal is taken");
  sysv_signal(SIGPROF, Hear);
  heard = 0;
  raise(SIGPROF);
  raise(SIGPROF);
  Expect(heard == 1, "System V's handler serves " + std::to_string(heard) + " times");
  ProfilerStop();
  unlink(path.c_str());
}

}  // namespace

int main() {
  const Functions library(RTLD_DEFAULT);
  const Functions libc(dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD));
  if (failures != 0) return 1;
  Expect(&bsd_signal != libc.set_handler[1], "the library does not stand before libc");
  for (const int number : {SIGUSR1, SIGKILL, 0, -1, 32, NSIG}) {
    CompareWithLibc(library, libc, number, __sigaction);
  }
  CheckThatTheProfilerKeepsItsSignal(library, libc);
  return failures == 0 ? 0 : 1;
}
