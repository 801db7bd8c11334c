// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// every_boundary [all] [OPERATION [HANDLER]]: runs signal handlers before each instruction of
// malloc, free and their kin. Of operations and handlers it takes those whose names begin so.
//
// Short operations, which find what they want at hand, are interrupted once in each run, at each
// boundary in turn. Long ones, which take every slow path, are interrupted at some boundaries of a
// run, by a few handlers that take turns; `all` tries each of them, in one run after the other,
// with one handler in each. Every run is a child process or a part of one, which ends with a
// verdict: blocks overlap, are too small, lose their contents or stay in use, or the allocator
// aborts.
//
// With lists of the thread's own, operations of classes that drain, or begin to, are interrupted at
// the boundaries of their fast paths. Afterwards each list must have the length that its count
// says.
//
// There, a handler that keeps blocks or frees older ones may not run
// between the instruction that reads a list's head and the one that writes it. This is the only
// exception. The boundaries where it fails are found, one child for each, and printed; each must
// lie between two such instructions, which HeadWindows finds. docs/locking.md tells what follows.
//
// Exits with 77 where nothing can be stepped.

#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "fakes/one_cpu.h"
#include "stress/signals/draining.h"
#include "stress/signals/extension.h"
#include "stress/signals/handlers.h"
#include "stress/signals/head_windows.h"
#include "stress/signals/ledger.h"
#include "stress/signals/operations.h"
#include "stress/signals/stepper.h"

namespace tcmalloc::testing {
namespace {

constexpr int kSkipped = 77;
constexpr unsigned kPatience = 600;  // seconds of one child, for a hang
// Between two boundaries of a long operation where the handler runs. Odd, so that loops are met
// everywhere.
constexpr uint64_t kStride = 61;
constexpr uint64_t kSlowStride = 1499;
// Calls of a slow handler in a run, one and a half times what the longest operation is worth by
// itself. The front end that turns, and a hook that is left, put operations on paths with many
// times the boundaries, and the more of them, the more often they are called.
constexpr uint64_t kMostSlowCalls = 80;
// Of a short operation that takes the slow path, and so has more boundaries than this, the first
// ones are tried: those of its fast path and of what follows where that fails.
constexpr uint64_t kShortBoundaries = 256;
constexpr uint64_t kFirstBoundaries = 64;
constexpr uint64_t kLastBoundaries = 24;
// So many boundaries of a short operation are enough for slow handlers: those of its fast path.
constexpr uint64_t kSlowRuns = 40;

// Written by a child.
struct Report {
  uint64_t boundaries = 0;  // of the last run
  uint64_t handled = 0;     // in all runs
  uint64_t first = 0;       // of the run that is under way
  uintptr_t address = 0;    // where the handler ran last
  uintptr_t offset = 0;
  uint64_t turns = 0;                // that handlers of a group had
  const Handler* handler = nullptr;  // that ran last
};
Report* report;
HeadWindows* head_windows;

// Runs of one child, which begin at these boundaries.
struct Runs {
  uint64_t first = 0;
  uint64_t step = 1;
  uint64_t count = 1;
  uint64_t stride = 0;
  uint64_t most = UINT64_MAX;  // calls of handlers in a run
  bool settle_each = false;    // whether each run must leave nothing in use
  bool exact = false;          // whether each run must leave counts as long as their lists
};

std::vector<uintptr_t> failures;  // addresses at which handlers that change lists fail
uint64_t total_handled = 0;
const Handler* handler;  // of a group, the first one

// Handlers that take turns in one run of a long operation. Stepping takes most of its time.
using Group = std::vector<const Handler*>;
constexpr size_t kMostInGroup = 5;
Group group;

void Call(const Handler& next) {
  report->address = Stepper::last_address();
  report->offset = Stepper::last_offset();
  report->handler = &next;
  next.handle();
}
void CallHandler() { Call(*handler); }

bool FailsHere(const Handler& candidate) {
  return candidate.changes_lists &&
         std::find(failures.begin(), failures.end(), Stepper::last_address()) != failures.end();
}

// Each round begins one handler later than the one before, so that loops meet every handler at each
// of their instructions.
void CallNext() {
  const size_t size = group.size();
  for (size_t tries = 0; tries < size; ++tries) {
    const uint64_t turn = report->turns++;
    const Handler& next = *group[(turn + turn / size) % size];
    if (!FailsHere(next)) return Call(next);
  }
}

void LookForWindow() { head_windows->Look(report->first); }
constexpr Handler kLook = {"looks for the head", LookForWindow};

// Of blocks above a page, as many as a list holds; or so many that a list whose room is wrong runs
// empty often enough to be set right.
constexpr size_t kFewLargeBlocks = 10;
constexpr size_t kManyLargeBlocks = 150;

// Shows that the process can go on. Takes more small blocks of each size than a list holds, so that
// every list runs empty.
void Exercise(size_t large_blocks = kFewLargeBlocks) {
  std::vector<void*> blocks(300);
  for (const size_t size :
       {size_t{8}, size_t{48}, size_t{96}, size_t{192}, size_t{200}, size_t{20000}, size_t{40000},
        size_t{60000}, size_t{100000}, size_t{300000}}) {
    const size_t count = size < 1000 ? blocks.size() : large_blocks;
    for (size_t i = 0; i < count; ++i) blocks[i] = ledger.Add(std::malloc(size), size);
    for (size_t i = 0; i < count; ++i) std::free(ledger.Remove(blocks[i]));
  }
}

// A handler may leave the room of a list wrong by one until the list runs empty: docs/locking.md.
size_t SettledBytes(size_t large_blocks = kFewLargeBlocks) {
  Extension::ReleaseFreeMemory();
  Exercise(large_blocks);
  Extension::ReleaseFreeMemory();
  return Extension::BytesInUse();
}
bool HasLost(size_t before) {
  return SettledBytes() != before && SettledBytes(kManyLargeBlocks) != before;
}

void LookOnce(const InterruptedOperation& operation, uint64_t boundary) {
  Extension::ReleaseFreeMemory();
  operation.prepare();
  report->first = boundary;
  const size_t place = boundary == UINT64_MAX ? 0 : boundary;
  if (!operation.starts_empty) head_windows->Learn(place);
  Stepper::Arm({.first = boundary}, CallHandler);
  operation.run();
  Stepper::Disarm();
}

// At each boundary until a run goes the usual way there: the clock expires now and then.
[[noreturn]] void LookAtEach(const InterruptedOperation& operation, uint64_t boundaries) {
  constexpr int kTries = 8;
  head_windows->LearnEnd();
  for (int i = 0; i < kTries; ++i) {
    LookOnce(operation, UINT64_MAX);
    head_windows->NotePath();
  }
  for (uint64_t i = 0; i < boundaries; ++i) {
    for (int tries = 0; tries == 0 || (tries < kTries && !head_windows->IsOnPath(i)); ++tries) {
      LookOnce(operation, i);
    }
  }
  EndWith(kGood);
}

[[noreturn]] void RunChild(const InterruptedOperation& operation, const Runs& runs) {
  ::alarm(kPatience);
  constexpr rlimit kNoCore = {0, 0};
  ::setrlimit(RLIMIT_CORE, &kNoCore);
  if (handler == &kLook) LookAtEach(operation, runs.count);
  const bool is_list_handler = handler->changes_lists && !Extension::PerCpu();
  const size_t before = SettledBytes();
  for (uint64_t i = 0; i < runs.count; ++i) {
    if (handler->changes_lists) StockUp();
    // Lists begin each run alike.
    if (is_list_handler) Extension::ReleaseFreeMemory();
    operation.prepare();
    report->first = runs.first + i * runs.step;
    Stepper::Arm({.first = report->first,
                  .stride = runs.stride,
                  .most = runs.most,
                  .alone = !handler->has_threads},
                 runs.stride != 0 || runs.exact ? CallNext : CallHandler);
    operation.run();
    Stepper::Disarm();
    report->boundaries = Stepper::boundaries();
    report->handled += Stepper::handled();
    FinishHandlers();
    if (runs.settle_each && HasLost(before)) EndWith(kLost);
    if (runs.exact && Extension::BytesInUse() != before + DrainingBytes()) EndWith(kCount);
    FreeDraining();
  }
  if (!handler->has_threads && HasLost(before)) EndWith(kLost);
  EndWith(kGood);
}

// How a child ended, in words; empty if well.
std::string Run(const InterruptedOperation& operation, const Runs& runs) {
  *report = {};
  const pid_t child = ::fork();
  if (child == 0) RunChild(operation, runs);
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child) return "no child";
  total_handled += report->handled;
  if (WIFSIGNALED(status)) return ::strsignal(WTERMSIG(status));
  switch (WEXITSTATUS(status)) {
    case kGood:
      return "";
    case kTwice:
      return "a block twice";
    case kSmall:
      return "a block too small";
    case kChanged:
      return "a block changed";
    case kNoMemory:
      return "no memory";
    case kLost:
      return "memory lost";
    case kChild:
      return "a forked child failed";
    case kCount:
      return "a list with a wrong count";
    default:
      return "exit status " + std::to_string(WEXITSTATUS(status));
  }
}

bool failed = false;
const char* only_operation = "";
const char* only_handler = "";

void Complain(const InterruptedOperation& operation, const std::string& how) {
  const Handler* last = report->handler != nullptr ? report->handler : handler;
  std::printf("FAILED: %s, handler %s: %s; run from boundary %llu on, handler last at +%#lx\n",
              operation.name, last->name, how.c_str(),
              static_cast<unsigned long long>(report->first),
              static_cast<unsigned long>(report->offset));
  failed = true;
}

uint64_t CountBoundaries(const InterruptedOperation& operation) {
  handler = &Handlers()[0];
  const std::string how = Run(operation, {.first = UINT64_MAX});
  if (!how.empty()) Complain(operation, how);
  return report->boundaries;
}

void LookForWindows(const InterruptedOperation& operation, uint64_t boundaries) {
  handler = &kLook;
  const std::string how = Run(operation, {.count = boundaries});
  if (!how.empty()) Complain(operation, how);
  std::printf("  between the read and the write of a head:");
  for (uint64_t i = 0; i < boundaries; ++i) {
    if (head_windows->Contain(i)) std::printf(" %llu", static_cast<unsigned long long>(i));
  }
  std::printf("\n");
}

void NoteFailure(const InterruptedOperation& operation, const std::string& how) {
  if (std::find(failures.begin(), failures.end(), report->address) == failures.end()) {
    failures.push_back(report->address);
  }
  std::printf("  boundary %3llu at +%#lx: %s: %s\n", static_cast<unsigned long long>(report->first),
              static_cast<unsigned long>(report->offset), handler->name, how.c_str());
  if (!head_windows->Contain(report->first)) {
    Complain(operation, "not between the read and the write of a head");
  }
}

// Goes on behind each failure in a new child.
void FindFailures(const InterruptedOperation& operation, uint64_t boundaries) {
  for (uint64_t i = 0; i < boundaries; i = report->first + 1) {
    const std::string how =
        Run(operation, {.first = i, .count = boundaries - i, .settle_each = true});
    if (how.empty()) return;
    NoteFailure(operation, how);
  }
}

// Handlers that make the front end turn have nothing to do where it is fixed.
bool Applies(const Handler& candidate) {
  return std::strncmp(candidate.name, only_handler, std::strlen(only_handler)) == 0 &&
         (!candidate.turns || ::getenv("TCMALLOC_FRONT_END") == nullptr);
}

void RunShort(const InterruptedOperation& operation, bool all) {
  uint64_t boundaries = CountBoundaries(operation);
  std::printf("%s: %llu boundaries\n", operation.name, static_cast<unsigned long long>(boundaries));
  if (!all && boundaries > kShortBoundaries) boundaries = kFirstBoundaries;
  boundaries = std::min(boundaries, uint64_t{HeadWindows::kMostBoundaries});
  if (!Extension::PerCpu()) LookForWindows(operation, boundaries);
  for (const Handler& h : Handlers()) {
    if (!Applies(h)) continue;
    handler = &h;
    if (h.changes_lists && !Extension::PerCpu()) {
      FindFailures(operation, boundaries);
      continue;
    }
    const uint64_t count = all || !h.slow ? boundaries : std::min(boundaries, kSlowRuns);
    const std::string how = Run(operation, {.count = count});
    if (!how.empty()) Complain(operation, how);
  }
}

// At the first and the last boundaries, where the lists are open, but not at those where RunShort
// has seen handlers that change lists fail.
void RunDraining(const InterruptedOperation& operation) {
  const uint64_t boundaries = CountBoundaries(operation);
  std::printf("%s: %llu boundaries\n", operation.name, static_cast<unsigned long long>(boundaries));
  for (const Handler& h : DrainingHandlers()) {
    if (!Applies(h)) continue;
    group = {&h};
    handler = &h;
    const uint64_t head = std::min(boundaries, kFirstBoundaries);
    const uint64_t tail = std::min(boundaries - head, kLastBoundaries);
    for (const Runs& runs : {Runs{.count = head, .exact = true},
                             Runs{.first = boundaries - tail, .count = tail, .exact = true}}) {
      const std::string how = Run(operation, runs);
      if (!how.empty()) Complain(operation, how);
    }
  }
}

bool AreAlike(const Handler& a, const Handler& b) {
  return a.slow == b.slow && a.has_threads == b.has_threads && a.changes_lists == b.changes_lists;
}

// Neighbours that are alike; with `all`, each handler by itself.
std::vector<Group> Groups(bool all) {
  std::vector<Group> groups;
  for (const Handler& h : Handlers()) {
    if (!Applies(h)) continue;
    if (groups.empty() || all || groups.back().size() == kMostInGroup ||
        !AreAlike(*groups.back().front(), h)) {
      groups.emplace_back();
    }
    groups.back().push_back(&h);
  }
  return groups;
}

// Each handler of a group has its turn about as often as if it ran alone.
void RunLong(const InterruptedOperation& operation, bool all) {
  uint64_t place = 0;
  for (const Group& g : Groups(all)) {
    group = g;
    handler = g.front();
    const uint64_t stride = (handler->slow ? kSlowStride : kStride) / g.size() | 1;
    const bool is_first = place == 0;
    const uint64_t first = all ? 0 : place % stride;
    ++place;
    const std::string how =
        Run(operation, {.first = first,
                        .count = all ? stride : 1,
                        .stride = stride,
                        .most = all || !handler->slow ? UINT64_MAX : kMostSlowCalls * g.size()});
    if (!how.empty()) Complain(operation, how);
    if (is_first) {
      std::printf("%s: %llu boundaries\n", operation.name,
                  static_cast<unsigned long long>(report->boundaries));
    }
  }
}

bool IsWanted(const InterruptedOperation& operation) {
  return std::strncmp(operation.name, only_operation, std::strlen(only_operation)) == 0;
}

void RunAllDraining(bool all) {
  if (!LearnToDrain()) {
    std::printf("FAILED: a class does not drain\n");
    failed = true;
    return;
  }
  for (const InterruptedOperation& operation : DrainingOperations()) {
    if (IsWanted(operation)) RunDraining(operation);
  }
  for (const InterruptedOperation& operation : LongDrainingOperations()) {
    if (IsWanted(operation)) RunLong(operation, all);
  }
}

// Memory that children share, all zero.
template <typename T>
T* Shared() {
  return static_cast<T*>(
      ::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
}

int Main(bool all) {
  ::setvbuf(stdout, nullptr, _IONBF, 0);
  report = Shared<Report>();
  head_windows = Shared<HeadWindows>();
  if (!StayOnThisCpu() || !Stepper::Initialize("libtcmalloc") || !Extension::Initialize()) {
    std::printf("skipped: nothing to step\n");
    return kSkipped;
  }
  Exercise();
  std::printf("front end: %s\n", Extension::PerCpu() ? "per CPU" : "per thread");
  for (const InterruptedOperation& operation : ShortOperations()) {
    if (IsWanted(operation)) RunShort(operation, all);
  }
  if (!Extension::PerCpu()) RunAllDraining(all);
  for (const InterruptedOperation& operation : LongOperations()) {
    if (IsWanted(operation)) RunLong(operation, all);
  }
  std::printf("%llu handlers ran\n", static_cast<unsigned long long>(total_handled));
  return failed ? 1 : 0;
}

}  // namespace
}  // namespace tcmalloc::testing

int main(int argc, char** argv) {
  const bool all = argc > 1 && std::strcmp(argv[1], "all") == 0;
  if (all) --argc, ++argv;
  if (argc > 1) tcmalloc::testing::only_operation = argv[1];
  if (argc > 2) tcmalloc::testing::only_handler = argv[2];
  return tcmalloc::testing::Main(all);
}
