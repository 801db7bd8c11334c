// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "leak_check/leak_checker.h"

#include <pthread.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "base/attributes.h"
#include "base/message.h"
#include "heap/heap.h"
#include "leak_check/block_recorder.h"
#include "leak_check/live_words.h"
#include "leak_check/program_mappings.h"
#include "leak_check/report.h"
#include "leak_check/suppressions.h"
#include "recorder/profile_name.h"
#include "system/futex.h"
#include "system/signal_mask.h"
#include "system/stack_switch.h"
#include "system/system_calls.h"
#include "unwind/readable_memory.h"

extern "C" {
int __cxa_atexit(void (*f)(void*), void* argument, void* object) noexcept;
// A function of the program's, as LeakSanitizer knows it.
__attribute__((weak)) const char* __lsan_default_suppressions();
}

namespace tcmalloc {
namespace {

// Greater than the number of any thread.
constexpr uint32_t kExitWasChecked = UINT32_MAX;

constinit LiveWords<(size_t{1} << 14)> live_words;
constinit RegionSet root_regions;

uintptr_t StackPointer() {
  uintptr_t stack;
#if defined(__x86_64__)
  asm volatile("movq %%rsp, %0" : "=r"(stack));
#elif defined(__aarch64__)
  asm volatile("mov %0, sp" : "=r"(stack));
#endif
  return stack;
}

std::string_view ProgramName() {
  const std::string_view path = program_invocation_short_name;
  return path.empty() ? std::string_view("program") : path;
}

// Makes a name as gperftools does: the directory, program, process and check.
void MakeProfilePath(const Options& options, std::string_view check, ProfileName* path) {
  const PathOption& directory = options.heap_check_dump_directory;
  *path << (directory.empty() ? "/tmp" : directory.text) << "/" << ProgramName() << ".";
  path->AppendNumber(static_cast<uint64_t>(::getpid()), 1) << "." << check << "-end.heap";
}

void LoadSuppressions(const PathOption& file, Suppressions* suppressions) {
  if (file.empty()) return;
  Message message;
  message << "TCMALLOC_HEAP_CHECK_SUPPRESSIONS=";
  message.AppendQuoted(file.text);
  if (!suppressions->Load(file.text)) {
    Warn(message << " cannot be read, or is not a regular file");
  } else if (suppressions->unused_lines() > 0) {
    Warn(message << ": lines that are not used: " << suppressions->unused_lines()
                 << " (they are no suppressions, or there are more than "
                 << uint64_t{Suppressions::kMostPatterns} << ")");
  }
}

void AddSuppressions(const Options& options, Suppressions* suppressions) {
  LoadSuppressions(options.heap_check_suppressions, suppressions);
  // libc keeps tables of ended threads where only it finds them. The tables of dynamic programs
  // come from the linker.
  if (system_calls.getauxval(AT_BASE) == 0) suppressions->AddText("leak:^_dl_allocate_tls");
  if (__lsan_default_suppressions != nullptr) suppressions->AddText(__lsan_default_suppressions());
}

// Sets what the options say about pointers and where they are looked for.
void SetRules(const Options& options, SnapshotRequest* request) {
  const int64_t offset = options.heap_check_max_pointer_offset;
  request->rules = {.source_alignment = options.heap_check_pointer_source_alignment,
                    .most_offset = offset < 0 ? UINT64_MAX : static_cast<uint64_t>(offset)};
  request->mapping_roots = options.heap_check_mappings == HeapCheckMappingsOption::kAll;
  request->try_other_rules = options.heap_check_test_pointer_alignment;
}

}  // namespace

constinit LeakChecker leak_checker;

TCMALLOC_NOINLINE void CallWithRegistersOnStack(void (*f)(uintptr_t stack, void* argument),
                                                void* argument) {
  __builtin_unwind_init();
  f(StackPointer(), argument);
  // Keeps the call from becoming a jump, which would leave the frame.
  asm volatile("" ::: "memory");
}

struct LeakChecker::CheckJob {
  const char* name;
  uint64_t first_sequence;
  bool say_if_clean;
  CheckOutcome outcome;
  uintptr_t stack;  // of the program
};

bool LeakChecker::InOtherProcess() const { return ::getpid() != process_; }

void LeakChecker::Choose(const Options& options) {
  mode_ = options.heap_check;
  global_roots_ = true;
  thread_roots_ = true;
  switch (mode_) {
    case HeapCheckOption::kStrict:
      after_destructors_ = true;
      break;
    case HeapCheckOption::kDraconian:
      after_destructors_ = true;
      global_roots_ = false;
      thread_roots_ = false;
      break;
    case HeapCheckOption::kAsIs:
      after_destructors_ = options.heap_check_after_destructors;
      global_roots_ = options.heap_check_ignore_global_live;
      thread_roots_ = options.heap_check_ignore_thread_live;
      break;
    default:
      break;
  }
}

void LeakChecker::Start(const Options& options) {
  if (options.heap_check == HeapCheckOption::kOff) return;
  Choose(options);
  process_ = ::getpid();
  block_recorder.Start();
  if (!block_recorder.started()) return;
  StartProgramMappings();
  active_.store(true, std::memory_order_relaxed);
}

bool LeakChecker::IsWanted() { return ::getenv("HEAPCHECK") != nullptr; }

bool LeakChecker::checks_program() const { return active() && mode_ != HeapCheckOption::kLocal; }

TCMALLOC_NOINLINE void LeakChecker::ClearStack() {
  constexpr size_t kMostOfCheck = 1024;
  char words[kMostOfCheck];
  std::memset(words, 0, sizeof(words));
  // Keeps the stores, which nobody reads.
  asm volatile("" : : "r"(words) : "memory");
}

void LeakChecker::RunAtExit(void* self) {
  ClearStack();
  static_cast<LeakChecker*>(self)->CheckBeforeDestructors();
}

void LeakChecker::OnLastDestructors() {
  ClearStack();
  CheckAtExit();
}

void LeakChecker::CheckBeforeDestructors() {
  if (!after_destructors_) CheckAtExit();
}

int LeakChecker::StatusAfterCheck(int status) const {
  if (!leaks_at_exit_.load(std::memory_order_relaxed) || InOtherProcess()) return status;
  const uint64_t wanted = heap.options().heap_check_exit_code;
  return wanted == 0 ? status : static_cast<int>(wanted);
}

int LeakChecker::OnExitBegins(int status) {
  CheckBeforeDestructors();
  return StatusAfterCheck(status);
}

// A handler that is registered now runs before the destructors of the program's global objects, in
// case the program ends in a way that is not noticed before.
void LeakChecker::OnMainBegins(uintptr_t frame) {
  wrapper_frame_ = frame;
  if (!checks_program() || registered_) return;
  registered_ = true;
  if (mode_ == HeapCheckOption::kMinimal) first_sequence_ = block_recorder.sequence();
  __cxa_atexit(RunAtExit, this, nullptr);
}

int LeakChecker::OnMainEnds(int status) {
  main_frame_ = wrapper_frame_;
  return OnExitBegins(status);
}

// Several threads may call exit. Later ones wait for the check, because they end the process. The
// code that interrupted the check does not.
void LeakChecker::CheckAtExit() {
  if (!checks_program() || cancelled_ || InOtherProcess()) return;
  uint32_t nobody = 0;
  const auto self = static_cast<uint32_t>(system_calls.gettid());
  // Acquire pairs with the release in CheckAtExit and makes the outcome visible.
  if (exit_checker_.compare_exchange_strong(nobody, self, std::memory_order_acquire)) {
    RunHeapCleanups();
    const CheckOutcome outcome = CheckProgram(true);
    if (outcome.objects > 0) leaks_at_exit_.store(true, std::memory_order_relaxed);
    // Release pairs with the acquires in CheckAtExit.
    exit_checker_.store(kExitWasChecked, std::memory_order_release);
    WakeSleepers(exit_checker_);
    return;
  }
  for (uint32_t checker = nobody; checker != kExitWasChecked && checker != self;) {
    SleepWhile(exit_checker_, checker);
    // Acquire pairs with the release in CheckAtExit.
    checker = exit_checker_.load(std::memory_order_acquire);
  }
}

void LeakChecker::EndWithStatus() const {
  const int status = StatusAfterCheck(0);
  if (status == 0) return;
  // Writes out what the program has printed, which would be lost otherwise.
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
  ::fflush(nullptr);
  ::_exit(status);
}

// The frame is searched for pointers. It is small, because others have left theirs where it has no
// variable yet; all that takes room is below.
CheckOutcome LeakChecker::Check(const char* name, uint64_t first_sequence, bool say_if_clean) {
  if (!active()) return {};
  CheckJob job = {name, first_sequence, say_if_clean, {}, 0};
  CallWithRegistersOnStack(RunJob, &job);
  return job.outcome;
}

CheckOutcome LeakChecker::CheckProgram(bool say_if_clean) {
  if (!checks_program()) return {};
  return Check("_main_", first_sequence_, say_if_clean);
}

bool LeakChecker::AddLiveWord(uintptr_t word) { return live_words.Add(word); }
bool LeakChecker::RemoveLiveWord(uintptr_t word) { return live_words.Remove(word); }
void LeakChecker::AddRootRegion(const Range& range) { root_regions.Add(range); }
void LeakChecker::RemoveRootRegion(const Range& range) { root_regions.Remove(range); }

void LeakChecker::RunJob(uintptr_t stack, void* argument) {
  auto* job = static_cast<CheckJob*>(argument);
  const int saved_errno = errno;
  int cancel_state = PTHREAD_CANCEL_ENABLE;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
  if (leak_checker.lock_.Lock()) {
    job->stack = stack;
    RunWithRoom(job);
    leak_checker.lock_.Unlock();
  } else {
    Warn(Message() << "leak check " << job->name
                   << " was not made: a signal handler asked for it during another one");
  }
  pthread_setcancelstate(cancel_state, nullptr);
  errno = saved_errno;
}

// A stack of the check's own is no root, because the search knows nothing of its mapping.
void LeakChecker::RunWithRoom(CheckJob* job) {
  constexpr size_t kRoom = size_t{64} << 10;
  constexpr size_t kOwnStack = size_t{256} << 10;
  const auto run = [](void* to_run) { leak_checker.Run(static_cast<CheckJob*>(to_run)); };
  if (IsReadable(job->stack - kRoom, kRoom)) return run(job);
  const Scratch<char> own(kOwnStack);
  if (own.data() == nullptr) return run(job);
  const SignalsBlocked blocked;
  CallOnStack(own.data() + own.size(), run, job);
}

void LeakChecker::Run(CheckJob* job) {
  const Options& options = heap.options();
  const std::string_view name = job->name;
  SnapshotResult* result = NewResult();
  const Scratch<Range> mappings(MappingSet::kMost + RegionSet::kMost);
  if (result == nullptr || mappings.data() == nullptr) {
    DeleteResult(result);
    return PrintFailure(name, SnapshotOutcome::kNoMemory);
  }
  const MappingSet* known = program_mappings.get();
  const size_t mapping_count =
      known != nullptr ? known->Copy(mappings.data(), MappingSet::kMost) : 0;
  Range* regions = mappings.data() + mapping_count;
  const size_t region_count = root_regions.Copy(regions, RegionSet::kMost);

  Suppressions suppressions;
  AddSuppressions(options, &suppressions);
  const RecordedBlocks blocks(block_recorder);
  SnapshotRequest request;
  SetRules(options, &request);
  request.blocks = &blocks;
  request.filter = suppressions.empty() ? nullptr : &suppressions;
  request.first_sequence = job->first_sequence;
  request.global_roots = global_roots_;
  request.thread_roots = thread_roots_;
  request.mappings = {mappings.data(), mapping_count};
  request.root_regions = {regions, region_count};
  request.live_words = live_words.words();
  const uintptr_t main_frame = main_frame_;
  request.own_stack = main_frame != 0 ? main_frame : job->stack;
  MapsText maps;
  const SnapshotOutcome outcome = TakeSnapshot(request, &maps, result);
  const CheckReport report = {name, *result, blocks, options};
  if (outcome != SnapshotOutcome::kDone) {
    PrintFailure(name, outcome);
  } else {
    job->outcome = {true, result->lost_blocks, result->lost_bytes};
    Tell(report, &maps, job->say_if_clean);
  }
  DeleteResult(result);
}

// Tools that print a report of their own read the profile, also one of nothing.
void LeakChecker::Tell(const CheckReport& report, MapsText* maps, bool say_if_clean) {
  const bool print = report.options.heap_check_report;
  const bool clean = report.result.lost_blocks == 0;
  if (clean && !say_if_clean) return;
  if (clean && print) return PrintNoLeaks(report);
  ProfileName path;
  MakeProfilePath(report.options, report.name, &path);
  if (!path.ok()) Warn(Message() << "the name of a leak profile is too long; not writing it");
  // Files are written without the mappings if these cannot be read.
  if (maps->view().empty()) static_cast<void>(maps->Read());
  const Mappings mappings(*maps);
  const bool written = path.ok() && WriteLeakProfiles(report, *maps, mappings, path);
  if (print) PrintLeaks(report, mappings, written ? path.view() : std::string_view());
}

}  // namespace tcmalloc
