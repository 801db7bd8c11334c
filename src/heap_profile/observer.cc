// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The observer of libraries with profiles.

#include "heap/observer.h"

#define TCMALLOC_OPTIONAL
#include <tcmalloc/internal_malloc_extension.h>

#include <algorithm>
#include <cstdint>

#include "base/message.h"
#include "central/sampled_page.h"
#include "guarded/fault_handler.h"
#include "guarded/guarded_blocks.h"
#include "heap/heap.h"
#include "heap_profile/caller_stack.h"
#include "heap_profile/crash_report.h"
#include "heap_profile/early_stacks.h"
#include "heap_profile/exit_profiles.h"
#include "heap_profile/profiles.h"
#include "heap_profile/sample_weight.h"
#include "heap_profile/text_samples.h"
#include "heap_profile/usdt.h"
#include "options/option_table.h"
#include "size_class/size_classes.h"
#include "system/clock.h"
#include "system/random.h"
#include "system/system_calls.h"
#include "unwind/libunwind_walker.h"
#include "unwind/stack_trace.h"

namespace tcmalloc {
namespace {

// Makes the functions to which the headers refer weakly a part of static programs, because weak
// references extract nothing from an archive.
TCMALLOC_RETAINED tcmalloc_profile* (*const profile_reference)(int) = tcmalloc_profile_take;
TCMALLOC_RETAINED void (*const recorder_reference)() = KeepRecorder;

// Says which methods there are, and warns if the one that is wanted is not there.
void ChooseUnwindMethod(const Options& options) {
  // As usual, so that the process need not read the names.
  if (options.stacktrace_method == StackTraceOption::kTables &&
      !options.stacktrace_method_verbose) {
    return;
  }
  const auto index = static_cast<size_t>(options.stacktrace_method);
  const std::string_view name = kStackTraceMethods[index];
  const UnwindMethod method = ParseUnwindMethod(name).value_or(UnwindMethod::kTables);
  const bool missing = method == UnwindMethod::kLibunwind && !HasLibunwind();
  SetUnwindMethod(missing ? UnwindMethod::kTables : method);
  if (missing) {
    Warn(Message() << "TCMALLOC_STACKTRACE_METHOD=libunwind: the program has no libunwind; using "
                      "tables");
  }
  if (!options.stacktrace_method_verbose) return;
  Warn(Message() << "call stacks can be walked by: tables, frame_pointers"
                 << (HasLibunwind() ? ", libunwind" : "") << "; using "
                 << (missing ? "tables" : name));
}

// A twin is kept if so many of its size fit between two samples on average: these objects take less
// than a thousandth of what the program has of the size.
constexpr uint64_t kTwinsPerPeriod = 1024;
constexpr size_t kMostAlignment = size_t{1} << 31;

double BytesFor(const Sample& sample) {
  return sample.weight * static_cast<double>(sample.allocated);
}

uint64_t Weighted(const Sample& sample) {
  return static_cast<uint64_t>(sample.weight * static_cast<double>(sample.requested));
}

// A walk of the stack touches unwind tables of the program and its libraries, some 400 KiB and up
// to several MiB, which is little to a process with a heap of so many pages.
constexpr Length kSmallHeap = Length::FromBytesCeil(size_t{256} << 20);

// Returns true if the stack may be copied and be walked later. Nobody waits for it: a program that
// sets its own period wants profiles.
bool MayWalkLater() {
  return heap.page_heap().total() <= kSmallHeap &&
         (heap.sample_period() == Options().sample_parameter || heap.sample_period() == 0) &&
         heap.options().heap_check == HeapCheckOption::kOff && !profiles.allocated.has_users() &&
         !profiles.freed.has_users() && !profiles.hooks.has_hooks();
}

// Walks the stack of whoever called this library. Returns it with a reference. Not inlined, because
// a copy of the stack has the room for the frames as well.
TCMALLOC_NOINLINE StackId WalkCaller() { return stack_table.Add(CallerStack().frames()); }

// Returns the stack of whoever called this library, with a reference.
StackId StackOfCaller() {
  if (MayWalkLater()) {
    if (const StackId id = early_stacks.Add(stack_table)) return id;
  }
  return WalkCaller();
}

// Returns the kernel's number of the running thread. Asks the kernel once for each thread that has
// a front end of its own, because a system call takes as long as the rest of a sample's record.
uint32_t OwnThreadNumber() {
  ThreadHeader* const own = current_thread.header();
  if (own->seat == nullptr) return static_cast<uint32_t>(system_calls.gettid());
  if (own->kernel_number == 0) own->kernel_number = static_cast<uint32_t>(system_calls.gettid());
  return own->kernel_number;
}

// Records a sample. Sets everything that the caller left open. Returns 0 if it was left out.
SampleId Record(Sample sample, StackId stack) {
  sample.time_ns = MonotonicNanoseconds();
  sample.thread = OwnThreadNumber();
  sample.stack = stack;
  const SampleId id = sample_table.Add(sample);
  if (id != 0) {
    profiles.peak.NoteChange(BytesFor(sample));
    profiles.allocated.Append({.sample = sample});
    profiles.hooks.Note(/*of_free=*/false, id, sample);
    if (AllocProbeIsAttached()) FireAllocProbe(sample.address, sample.requested, Weighted(sample));
  } else if (sample.stack != 0) {
    stack_table.Release(sample.stack);
  }
  return id;
}

// Records a sample that is a guarded block. Not inlined, as WalkCaller.
TCMALLOC_NOINLINE void RecordGuardedSample(void* object, const Sample& sample) {
  const CallerStack stack;
  const SampleId id = Record(sample, stack_table.Add(stack.frames()));
  guarded_blocks.SetSample(object, id, stack.frames());
}

// Records the end of a sample and returns it.
Sample End(SampleId id) {
  const Sample sample = sample_table.Remove(id);
  profiles.hooks.Note(/*of_free=*/true, id, sample);
  if (FreeProbeIsAttached()) FireFreeProbe(sample.address);
  profiles.peak.NoteChange(-BytesFor(sample));
  if (profiles.freed.has_users()) {
    profiles.freed.Append({.sample = sample, .end_ns = MonotonicNanoseconds()});
  }
  if (sample.stack != 0) stack_table.Release(sample.stack);
  return sample;
}

}  // namespace

constinit StackTable stack_table;
constinit SampleTable sample_table;
constinit Profiles profiles;

uint64_t InitialSamplePeriod(const Options& options) {
  constexpr uint64_t kSalt = 0x73616d706c657321;
  heap.SeedShared(RandomSeed(kSalt));
  sample_table.set_limit(options.max_samples);
  profiles.allocated.set_limit(options.max_samples);
  profiles.freed.set_limit(options.max_samples);
  ChooseUnwindMethod(options);
  BeginExitProfiles(options);
  guarded_blocks.Configure(options);
  StartLeakCheck(options);
  misuse_report.store(ReportMisuse, std::memory_order_relaxed);
  return options.sample_parameter;
}

bool CopiesProcess(const Options& options) { return options.heap_check != HeapCheckOption::kOff; }

void SetSamplePeriod(uint64_t bytes) { heap.sample_period() = bytes; }

void* NewSampledObject(void* object, uint8_t c, const SampledRequest& request) {
  void* guarded = guarded_blocks.New(request.size, request.alignment, request.period);
  if (guarded == nullptr) return SamplesInPlace::MayHave(c) ? object : profiles.objects.New(c);
  InstallFaultHandler();
  return guarded;
}

bool RecordSmallSample(void* object, const void* twin, const SampledRequest& request) {
  const auto [size, alignment, period] = request;
  const bool guarded = heap.guarded().Owns(object);
  const uint8_t c = guarded
                        ? SizeClassForAligned(size, std::max(alignment, size_t{1}))
                        : ClassOfObject(heap.page_map().Get(PageId::Containing(object)), object);
  const size_t allocated = kSizeClasses[c].size;
  const bool stays = object == twin;
  const bool keeps_twin =
      stays || (!guarded && allocated * kTwinsPerPeriod <= heap.sample_period());
  const Sample sample{.address = reinterpret_cast<uintptr_t>(object),
                      .requested = size,
                      .allocated = allocated,
                      .weight = SampleWeight(PointsIn(std::max<size_t>(size, 1), period)),
                      .alignment = static_cast<uint32_t>(alignment),
                      .twin = reinterpret_cast<uintptr_t>(twin),
                      .keeps_twin = keeps_twin};
  if (guarded) {
    RecordGuardedSample(object, sample);
    return false;
  }
  const SampleId id = Record(sample, StackOfCaller());
  if (stays) {
    if (id != 0) profiles.in_place.Add(object, id);
    return true;
  }
  if (id == 0) return false;
  profiles.objects.SetSample(object, id);
  if (keeps_twin) profiles.kept_bytes.fetch_add(allocated, std::memory_order_relaxed);
  return keeps_twin;
}

void RecordLargeSample(Span* span, size_t size, size_t alignment) {
  const Sample sample{.address = reinterpret_cast<uintptr_t>(span->start()),
                      .requested = size,
                      .allocated = span->bytes(),
                      .weight = SampleWeight(span->expected_points()),
                      .alignment = static_cast<uint32_t>(std::min(alignment, kMostAlignment))};
  span->SetSample(Record(sample, StackOfCaller()), span->expected_points());
}

void* FreeSampledObject(Span* span, const void* object) {
  const SampleId id = profiles.objects.Delete(span, object);
  if (id == 0) return nullptr;
  const Sample sample = End(id);
  if (!sample.keeps_twin) return nullptr;
  profiles.kept_bytes.fetch_sub(sample.allocated, std::memory_order_relaxed);
  return reinterpret_cast<void*>(sample.twin);
}

void FreeGuardedBlock(const void* block) {
  const CallerStack stack(GuardedStack::kMostFrames);
  const SampleId id = guarded_blocks.Delete(block, stack.frames());
  if (id != 0) End(id);
}

size_t GuardedBytes(const void* block, const char* call) {
  return guarded_blocks.SizeOf(block, call);
}

void NoteObjectFreed(Span* span, const void* object) {
  if (const SampleId id = profiles.in_place.Take(span, object)) End(id);
}

void NoteSampleFreed(SampleId id) { End(id); }

void NoteSampleResized(const Span* span, size_t size) {
  const double weight = SampleWeight(span->expected_points());
  const Sample old = sample_table.Resize(span->sample(), size, span->bytes(), weight);
  profiles.peak.NoteChange(weight * static_cast<double>(span->bytes()) - BytesFor(old));
}

void NoteHeapGrowth(size_t bytes) {
  constexpr Length kTinyHeap = Length::FromBytesCeil(size_t{8} << 20);
  if (bytes == 0) return;
  const int saved_errno = errno;
  const bool wants_stack = heap.page_heap().total() > kTinyHeap;
  profiles.growths.Add(bytes, wants_stack ? StackOfCaller() : 0);
  errno = saved_errno;
}

bool VisitSamples(StackRecordVisitor visit, void* argument) {
  early_stacks.WalkAll(stack_table);
  const StackTable::Reader reader(stack_table);
  TextSamples samples(heap.sample_period());
  sample_table.ForEach([&](const Sample& sample) {
    StackRecord record = samples.RecordOf(sample);
    if (record.count == 0) return;
    if (sample.stack != 0) record.frames = reader.frames(sample.stack);
    visit(record, argument);
  });
  return true;
}

bool VisitGrowths(StackRecordVisitor visit, void* argument) {
  early_stacks.WalkAll(stack_table);
  const StackTable::Reader reader(stack_table);
  profiles.growths.ForEach([&](uint64_t count, uint64_t bytes, StackId stack) {
    StackRecord record{.count = count, .bytes = bytes, .frames = {}};
    if (stack != 0) record.frames = reader.frames(stack);
    visit(record, argument);
  });
  return true;
}

int CaptureCallerOfHook(void** result, int max_depth, int skip_count) {
  CallerStack stack;
  const size_t guessed = stack.LeaveOutHook() ? 0 : static_cast<size_t>(std::max(skip_count, 0));
  const std::span<void* const> frames = stack.frames();
  const size_t skipped = std::min(frames.size(), guessed);
  const size_t most = static_cast<size_t>(std::max(max_depth, 0));
  const std::span<void* const> wanted = frames.subspan(skipped);
  std::copy_n(wanted.begin(), std::min(wanted.size(), most), result);
  return static_cast<int>(std::min(wanted.size(), most));
}

void ForgetReadersAfterFork() { stack_table.ForgetReaders(); }

void CallNotedHooks() { profiles.hooks.CallNoted(); }

SampledMemory CountSampledMemory() {
  const SampledObjectsStats stats = profiles.objects.stats();
  // Kept memory counts as in use where it lies.
  const uint64_t kept = profiles.kept_bytes.load(std::memory_order_relaxed);
  return {.span_bytes = stats.span_bytes,
          .in_use_bytes = stats.in_use_bytes - std::min<uint64_t>(kept, stats.in_use_bytes)};
}

}  // namespace tcmalloc
