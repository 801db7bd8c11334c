// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "recorder/heap_profiler.h"

#include <gperftools/malloc_hook_c.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>

#include "allocator/slow_path.h"
#include "heap/heap.h"
#include "heap_profile/profiles.h"
#include "hook/hooks.h"
#include "profile_format/profile_file.h"
#include "recorder/mapping_log.h"
#include "recorder/recorded_profile.h"
#include "recorder/say.h"
#include "system/clock.h"

namespace tcmalloc {
namespace {

// Bytes that threads may allocate before an interval is looked at, as a share of the shortest one.
constexpr uint64_t kQuantaPerInterval = 1024;
constexpr int kNoQuantum = 63;

// Returns true if the options ask for mappings in the profile.
bool RecordsMappings() {
  return heap.options().heap_profiler_mmap || heap.options().heap_profiler_only_mmap;
}

bool WritesProto() { return heap.options().profile_format == ProfileFormatOption::kProto; }

void OnNew(const void* block, size_t bytes) {
  heap_profiler.DumpIfDue(recorder.NoteNew(block, bytes));
}

void OnDelete(const void* block) { heap_profiler.DumpIfDue(recorder.NoteDelete(block)); }

void OnMmap(const void* result, const void* start, size_t bytes, int protection, int flags, int fd,
            off_t offset) {
  if (heap.options().heap_profiler_mmap_log) {
    LogMmap(result, {start, bytes, protection, flags, fd, offset});
  }
  if (result == MAP_FAILED || !RecordsMappings()) return;
  heap_profiler.DumpIfDue(recorder.NoteMapped(result, bytes));
}

void OnMunmap(const void* start, size_t bytes) {
  if (heap.options().heap_profiler_mmap_log) LogMunmap(start, bytes);
  if (RecordsMappings()) heap_profiler.DumpIfDue(recorder.NoteUnmapped(start, bytes));
}

void OnMremap(const void* result, const void* old_start, size_t old_bytes, size_t new_bytes,
              int flags, const void* new_start) {
  if (heap.options().heap_profiler_mmap_log) {
    LogMremap(result, {old_start, old_bytes, new_bytes, flags, new_start});
  }
  if (result == MAP_FAILED || !RecordsMappings()) return;
  const bool passed = recorder.NoteUnmapped(old_start, old_bytes);
  heap_profiler.DumpIfDue(recorder.NoteMapped(result, new_bytes) || passed);
}

void OnSbrk(const void* result, ptrdiff_t increment) {
  if (heap.options().heap_profiler_mmap_log) LogSbrk(result, increment);
  if (result == MAP_FAILED || !RecordsMappings()) return;
  const auto* before = static_cast<const char*>(result);
  const bool passed =
      increment > 0 ? recorder.NoteMapped(before, static_cast<size_t>(increment))
                    : recorder.NoteUnmapped(before + increment, static_cast<size_t>(-increment));
  heap_profiler.DumpIfDue(passed);
}

bool WatchesMappings() { return RecordsMappings() || heap.options().heap_profiler_mmap_log; }

// Leaves every thread to the slow paths, as hooks of the program do.
void WatchBlocks() {
  const SlowPath slow_path(SlowPath::Patient{});
  if (!slow_path.reentrant()) heap.CloseThreads();
}

}  // namespace

constinit Recorder recorder(stack_table);
constinit HeapProfiler heap_profiler;

// Returns the logarithm of the bytes at which the intervals are looked at.
int HeapProfiler::Quantum() {
  const Options& options = heap.options();
  uint64_t shortest = UINT64_MAX;
  for (const uint64_t interval :
       {options.heap_profiler_allocation_interval, options.heap_profiler_deallocation_interval,
        options.heap_profiler_inuse_interval}) {
    if (interval != 0) shortest = std::min(shortest, interval);
  }
  if (shortest == UINT64_MAX) return kNoQuantum;
  const uint64_t bytes = std::max<uint64_t>(shortest / kQuantaPerInterval, 1);
  return static_cast<int>(std::bit_width(bytes)) - 1;
}

bool HeapProfiler::AddHooks() {
  bool added = true;
  if (!heap.options().heap_profiler_only_mmap) {
    added = hooks.new_block.Add(OnNew) && hooks.delete_block.Add(OnDelete);
    WatchBlocks();
  }
  if (WatchesMappings()) {
    added = added && hooks.mmap.Add(OnMmap) && hooks.munmap.Add(OnMunmap) &&
            hooks.mremap.Add(OnMremap) && hooks.sbrk.Add(OnSbrk);
  }
  return added;
}

// Removes those that are there.
void HeapProfiler::RemoveHooks() {
  static_cast<void>(hooks.new_block.Remove(OnNew));
  static_cast<void>(hooks.delete_block.Remove(OnDelete));
  static_cast<void>(hooks.mmap.Remove(OnMmap));
  static_cast<void>(hooks.munmap.Remove(OnMunmap));
  static_cast<void>(hooks.mremap.Remove(OnMremap));
  static_cast<void>(hooks.sbrk.Remove(OnSbrk));
}

bool HeapProfiler::StartLocked(std::string_view prefix) {
  prefix_.Clear();
  prefix_ << prefix;
  if (!prefix_.ok()) {
    Warn(Message() << "the prefix of heap profiles is too long; writing none");
    return false;
  }
  process_ = getpid();
  in_child_ = false;
  last_allocated_ = 0;
  last_freed_ = 0;
  high_water_ = 0;
  last_ns_ = MonotonicNanoseconds();
  recorder.Start(Quantum());
  if (AddHooks()) return true;
  RemoveHooks();
  recorder.Stop();
  Warn(Message() << "there are too many hooks for the heap profiler; running without it");
  return false;
}

void HeapProfiler::Start(std::string_view prefix) {
  if (!lock_.Lock()) return;
  const bool started = !running() && StartLocked(prefix);
  lock_.Unlock();
  if (started) Say(Message() << "Starting tracking the heap");
}

void HeapProfiler::StartByOptions() {
  const Options& options = heap.options();
  if (options.heap_profiler_prefix.empty()) return;
  ProfileName prefix;
  prefix << options.heap_profiler_prefix.text;
  const bool in_marked_child = prefix.ClearMark();
  AppendProcess(prefix, getpid(), options.heap_profiler_use_pid || in_marked_child);
  if (options.heap_profiler_cleanup) RemoveOldProfiles(prefix.view());
  Start(prefix.view());
}

void HeapProfiler::Stop() {
  if (!lock_.Lock()) return;
  if (running()) {
    RemoveHooks();
    recorder.Stop();
  }
  lock_.Unlock();
}

// Appends the name of the next file. The child of a fork names its files after itself.
void HeapProfiler::NameNextFile() {
  const pid_t process = getpid();
  if (process != process_) {
    process_ = process;
    in_child_ = true;
    files_ = 0;
  }
  path_.Clear();
  path_ << prefix_.view();
  if (in_child_) (path_ << "_").AppendNumber(static_cast<uint64_t>(process), 1);
  (path_ << ".").AppendNumber(++files_, 4) << ".heap" << (WritesProto() ? ".pb.gz" : "");
}

void HeapProfiler::DumpLocked(std::string_view reason) {
  const Recorder::Bytes bytes = recorder.bytes();
  last_allocated_ = bytes.allocated;
  last_freed_ = bytes.freed;
  high_water_ = std::max<uint64_t>(high_water_, bytes.in_use());
  last_ns_ = MonotonicNanoseconds();
  NameNextFile();
  if (!path_.ok()) {
    Warn(Message() << "the name of a heap profile is too long; not writing it");
    return;
  }
  Say(Message() << "Dumping heap profile to " << path_.view() << " (" << reason << ")");
  ProfileFile file(path_.text());
  if (!file.ok()) return;
  const bool whole = WritesProto() ? WriteRecordedProto(recorder.stacks(), file)
                                   : WriteRecordedText(recorder.stacks(), file);
  if (whole) file.Complete();
}

void HeapProfiler::Dump(std::string_view reason) {
  if (!running() || !lock_.Lock()) return;
  if (running()) DumpLocked(reason);
  lock_.Unlock();
}

void HeapProfiler::TryDump(std::string_view reason) {
  if (!running() || !lock_.TryLock()) return;
  if (running()) DumpLocked(reason);
  lock_.Unlock();
}

void HeapProfiler::DumpAtExit() {
  if (!running()) return;
  const uint64_t in_use = recorder.bytes().in_use();
  Message reason;
  reason << "Exiting, ";
  if (in_use >> 20 != 0) {
    reason << (in_use >> 20) << " MB in use";
  } else if (in_use >> 10 != 0) {
    reason << (in_use >> 10) << " kB in use";
  } else {
    reason << in_use << " bytes in use";
  }
  Dump(reason.view());
}

// Returns true if a file is due, and why.
bool HeapProfiler::FindReason(Message* reason) const {
  const Options& options = heap.options();
  const Recorder::Bytes bytes = recorder.bytes();
  const uint64_t in_use_mb = bytes.in_use() >> 20;
  const auto is_due = [](uint64_t interval, uint64_t now, uint64_t last) {
    return interval != 0 && now >= last + interval;
  };
  if (is_due(options.heap_profiler_allocation_interval, bytes.allocated, last_allocated_)) {
    *reason << (bytes.allocated >> 20) << " MB allocated cumulatively, " << in_use_mb
            << " MB currently in use";
  } else if (is_due(options.heap_profiler_deallocation_interval, bytes.freed, last_freed_)) {
    *reason << (bytes.freed >> 20) << " MB freed cumulatively, " << in_use_mb
            << " MB currently in use";
  } else if (is_due(options.heap_profiler_inuse_interval, bytes.in_use(), high_water_ + 1)) {
    *reason << in_use_mb << " MB currently in use";
  } else if (TimeIsUp()) {
    *reason << SecondsSinceLast() << " sec since the last dump";
  } else {
    return false;
  }
  return true;
}

uint64_t HeapProfiler::SecondsSinceLast() const {
  return static_cast<uint64_t>(MonotonicNanoseconds() - last_ns_) / 1'000'000'000;
}

bool HeapProfiler::TimeIsUp() const {
  const uint64_t interval = heap.options().heap_profiler_time_interval;
  return interval != 0 && SecondsSinceLast() >= interval;
}

void HeapProfiler::DumpIfDue(bool passed) {
  if (TCMALLOC_LIKELY(!passed && !TimeIsUp())) return;
  Message reason;
  if (!FindReason(&reason)) return;
  if (!lock_.TryLock()) return;
  // Another thread may have written the file meanwhile.
  Message now;
  if (running() && FindReason(&now)) DumpLocked(now.view());
  lock_.Unlock();
}

}  // namespace tcmalloc
