// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "fakes/fault_injection.h"

#include <atomic>
#include <iterator>
#include <optional>

#include "base/message.h"
#include "base/random.h"
#include "options/parse.h"
#include "system/environment.h"

namespace tcmalloc::testing {
namespace {

constexpr std::string_view kVariable = "TCMALLOC_TEST_FAULT";

// A plan and the number of calls since it was set. Fields are set one by one: a call that another
// thread makes meanwhile may see half of a plan, which only moves the moment of its fault.
class PlannedFaults {
 public:
  void Set(const FaultPlan& plan) {
    mode_.store(FaultMode::kNever);
    k_.store(plan.k);
    error_.store(plan.error);
    count_.store(0);
    mode_.store(plan.mode);
  }

  // Counts a call; the error that it is to fail with, or 0.
  int Next() {
    const uint64_t number = count_.fetch_add(1) + 1;
    return Hits(number) ? error_.load() : 0;
  }

 private:
  bool Hits(uint64_t number) const {
    const uint64_t k = k_.load();
    switch (mode_.load()) {
      case FaultMode::kNever:
        return false;
      case FaultMode::kOnce:
        return number == k;
      case FaultMode::kFrom:
        return number >= k;
      case FaultMode::kEvery:
        return number % k == 0;
      case FaultMode::kRandom:
        return NextRandom(number) % k == 0;
    }
    return false;
  }

  std::atomic<FaultMode> mode_{FaultMode::kNever};
  std::atomic<uint64_t> k_{1};
  std::atomic<int> error_{0};
  std::atomic<uint64_t> count_{0};
};

constinit PlannedFaults planned[kSystemCalls];
constinit PlannedFaults planned_everywhere;
constinit std::atomic<uint64_t> seen[kSystemCalls];
constinit std::atomic<uint64_t> injected{0};

enum class Setup : uint8_t { kNotStarted, kRunning, kDone };
constinit std::atomic<Setup> setup{Setup::kNotStarted};

constexpr std::string_view kCallNames[] = {
    "mmap",
    "munmap",
    "madvise",
    "process_madvise",
    "mprotect",
    "mremap",
    "sbrk",
    "prctl",
    "open",
    "read",
    "close",
    "unlink",
    "ftruncate",
    "fstatfs",
    "sched_getaffinity",
    "getrlimit",
    "futex",
    "clock_gettime",
    "rseq",
    "membarrier",
    "rt_sigaction",
    "rt_sigprocmask",
    "clone",
    "wait4",
    "pthread_key_create",
    "pthread_setspecific",
    "pthread_create",
    "pthread_atfork",
};
static_assert(std::size(kCallNames) == kSystemCalls);

struct ModeName {
  std::string_view name;
  FaultMode mode;
};
constexpr ModeName kModeNames[] = {
    {"once", FaultMode::kOnce},
    {"from", FaultMode::kFrom},
    {"every", FaultMode::kEvery},
    {"random", FaultMode::kRandom},
};

struct ErrorName {
  std::string_view name;
  int error;
};
constexpr ErrorName kErrorNames[] = {
    {"EAGAIN", EAGAIN}, {"ENOMEM", ENOMEM}, {"EINVAL", EINVAL}, {"EPERM", EPERM},
    {"ENOSYS", ENOSYS}, {"EINTR", EINTR},   {"EEXIST", EEXIST}, {"EACCES", EACCES},
};

// Takes what stands before the delimiter off the front of the text.
std::string_view TakePart(std::string_view* text, char delimiter) {
  size_t length = 0;
  while (length < text->size() && (*text)[length] != delimiter) ++length;
  const std::string_view part(text->data(), length);
  text->remove_prefix(length < text->size() ? length + 1 : length);
  return part;
}

std::optional<int> ParseError(std::string_view text) {
  for (const ErrorName& candidate : kErrorNames) {
    if (candidate.name == text) return candidate.error;
  }
  const std::optional<uint64_t> number = ParseCount(text);
  if (!number.has_value() || *number == 0 || *number > 4095) return std::nullopt;
  return static_cast<int>(*number);
}

std::optional<FaultMode> ParseMode(std::string_view text) {
  for (const ModeName& candidate : kModeNames) {
    if (candidate.name == text) return candidate.mode;
  }
  return std::nullopt;
}

// Understands one "NAME=VALUE" of a plan.
bool ParseSetting(std::string_view text, FaultPlan* plan) {
  const std::string_view name = TakePart(&text, '=');
  if (name == "k") {
    plan->k = ParseCount(text).value_or(0);
    return plan->k != 0;
  }
  if (name == "mode") {
    plan->mode = ParseMode(text).value_or(FaultMode::kNever);
    return plan->mode != FaultMode::kNever;
  }
  if (name == "errno") {
    plan->error = ParseError(text).value_or(0);
    return plan->error != 0;
  }
  return false;
}

bool InjectFaultsFromPart(std::string_view text) {
  const std::string_view name = TakePart(&text, ':');
  FaultPlan plan = {.mode = FaultMode::kOnce};
  while (!text.empty()) {
    if (!ParseSetting(TakePart(&text, ':'), &plan)) return false;
  }
  if (name == "all") {
    InjectFaultsEverywhere(plan);
    return true;
  }
  for (size_t call = 0; call < kSystemCalls; ++call) {
    if (kCallNames[call] != name) continue;
    InjectFaults(static_cast<SystemCall>(call), plan);
    return true;
  }
  return false;
}

// Calls that reading the environment makes are neither counted nor made to fail.
void SetUp() {
  Environment environment;
  EnvironmentVariable variable;
  while (environment.Next(&variable)) {
    if (variable.name == kVariable && !InjectFaultsFromText(variable.value)) {
      Message message;
      message << kVariable << " is not understood";
      Crash(message);
    }
  }
}

}  // namespace

void InjectFaults(SystemCall call, const FaultPlan& plan) {
  planned[static_cast<size_t>(call)].Set(plan);
}

void InjectFaultsEverywhere(const FaultPlan& plan) { planned_everywhere.Set(plan); }

void ClearFaults() {
  planned_everywhere.Set({});
  for (PlannedFaults& faults : planned) faults.Set({});
  for (std::atomic<uint64_t>& count : seen) count.store(0);
  injected.store(0);
}

bool InjectFaultsFromText(std::string_view text) {
  if (text.empty()) return false;
  while (!text.empty()) {
    if (!InjectFaultsFromPart(TakePart(&text, ','))) return false;
  }
  return true;
}

uint64_t CallsSeen(SystemCall call) { return seen[static_cast<size_t>(call)].load(); }

uint64_t FaultsInjected() { return injected.load(); }

int NextFault(SystemCall call) {
  Setup state = Setup::kNotStarted;
  if (setup.compare_exchange_strong(state, Setup::kRunning)) {
    SetUp();
    setup.store(Setup::kDone);
  } else if (state == Setup::kRunning) {
    return 0;
  }
  seen[static_cast<size_t>(call)].fetch_add(1);
  const int everywhere = planned_everywhere.Next();
  const int here = planned[static_cast<size_t>(call)].Next();
  const int error = here != 0 ? here : everywhere;
  if (error != 0) injected.fetch_add(1);
  return error;
}

ScopedFaultInjection::ScopedFaultInjection() : saved_(system_calls) {
  ClearFaults();
  system_calls = FaultySystemCalls();
}

ScopedFaultInjection::~ScopedFaultInjection() {
  system_calls = saved_;
  ClearFaults();
}

}  // namespace tcmalloc::testing
