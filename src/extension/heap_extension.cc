// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "extension/heap_extension.h"

#include <algorithm>
#include <climits>
#include <new>
#include <string_view>

#include "allocator/block_functions.h"
#include "allocator/slow_path.h"
#include "allocator/usable_size.h"
#include "extension/properties.h"
#include "extension/release.h"
#include "extension/string_append.h"
#include "extension/system_allocator.h"
#include "heap/heap.h"
#include "heap/observer.h"
#include "profile_format/text_profile.h"
#include "report/free_lists.h"
#include "report/range_snapshot.h"
#include "report/report.h"
#include "system/weak_cxx_symbols.h"

namespace tcmalloc {
namespace {

class StringSink final : public TextSink {
 public:
  explicit StringSink(MallocExtensionWriter* writer) : writer_(writer) {}
  void Write(std::string_view text) override { Append(writer_, text); }

 private:
  MallocExtensionWriter* writer_;
};

// Records as ReadStackTraces of gperftools gives them: for each its count, bytes, number of frames
// and frames, and a zero behind the last. Records that come up between counting and copying are
// left out.
class Traces {
 public:
  static void Count(const StackRecord& record, void* traces) {
    static_cast<Traces*>(traces)->needed_ += WordsFor(record);
  }
  static void Copy(const StackRecord& record, void* traces) {
    static_cast<Traces*>(traces)->Append(record);
  }

  // Returns an array that the caller deletes.
  void** Allocate() {
    capacity_ = needed_;
    // An array expression of this length would need the C++ library for one that is too large.
    words_ = static_cast<void**>(::operator new[]((capacity_ + 1) * sizeof(void*)));
    std::fill_n(words_, capacity_ + 1, nullptr);
    return words_;
  }

 private:
  static size_t WordsFor(const StackRecord& record) { return 3 + record.frames.size(); }

  void Append(const StackRecord& record) {
    if (used_ + WordsFor(record) > capacity_) return;
    words_[used_++] = reinterpret_cast<void*>(record.count);
    words_[used_++] = reinterpret_cast<void*>(record.bytes);
    words_[used_++] = reinterpret_cast<void*>(record.frames.size());
    for (const uintptr_t frame : record.frames) words_[used_++] = reinterpret_cast<void*>(frame);
  }

  size_t needed_ = 0;
  size_t capacity_ = 0;
  size_t used_ = 0;
  void** words_ = nullptr;
};

// Returns null in a library that has no such records.
void** ReadTraces(bool (*visit)(StackRecordVisitor visit, void* argument)) {
  Traces traces;
  if (!visit(Traces::Count, &traces)) return nullptr;
  void** words = traces.Allocate();
  visit(Traces::Copy, &traces);
  return words;
}

}  // namespace

void HeapExtension::GetStats(char* buffer, int buffer_length) {
  if (buffer_length <= 0) return;
  BufferSink sink(buffer, static_cast<size_t>(buffer_length));
  WriteTextReport(sink, 2);
}

void HeapExtension::GetHeapGrowthStacks(MallocExtensionWriter* writer) {
  StringSink sink(writer);
  WriteGrowthProfile(sink);
}

void** HeapExtension::ReadHeapGrowthStackTraces() {
  if (void** traces = ReadTraces(VisitGrowths)) return traces;
  const HeapGrowth growth = CurrentHeapGrowth();
  // One record: count, bytes and depth. A count of zero ends the list.
  return new void* [] {
    reinterpret_cast<void*>(growth.count), reinterpret_cast<void*>(growth.bytes), nullptr, nullptr
  };
}

void HeapExtension::GetHeapSample(MallocExtensionWriter* writer) {
  StringSink sink(writer);
  if (!WriteHeapSample(sink)) MallocExtension::GetHeapSample(writer);
}

void** HeapExtension::ReadStackTraces(int* sample_period) {
  *sample_period = static_cast<int>(std::min<uint64_t>(heap.sample_period(), INT_MAX));
  return ReadTraces(VisitSamples);
}

void HeapExtension::Ranges(void* arg, RangeFunction func) {
  const RangeSnapshot snapshot;
  for (const base::MallocRange& range : snapshot.ranges()) func(arg, &range);
}

bool HeapExtension::GetNumericProperty(const char* name, size_t* value) {
  if (name == nullptr || value == nullptr) return false;
  SlowPath slow_path(SlowPath::Patient{});
  return !slow_path.reentrant() && GetProperty(name, value);
}

bool HeapExtension::SetNumericProperty(const char* name, size_t value) {
  if (name == nullptr) return false;
  SlowPath slow_path(SlowPath::Patient{});
  return !slow_path.reentrant() && SetProperty(name, value);
}

void HeapExtension::MarkThreadIdle() { FlushThreadCache(); }

void HeapExtension::MarkThreadTemporarilyIdle() { FlushThreadCache(); }

SysAllocator* HeapExtension::GetSystemAllocator() { return CurrentSystemAllocator(); }

void HeapExtension::SetSystemAllocator(SysAllocator* a) { RegisterSystemAllocator(a); }

void HeapExtension::ReleaseToSystem(size_t num_bytes) { ReleaseFreeSpans(num_bytes); }

void HeapExtension::ReleaseFreeMemory() { tcmalloc::ReleaseFreeMemory(); }

void HeapExtension::SetMemoryReleaseRate(double rate) {
  SlowPath slow_path(SlowPath::Patient{});
  if (!slow_path.reentrant()) heap.SetReleaseRate(rate);
}

double HeapExtension::GetMemoryReleaseRate() {
  SlowPath slow_path(SlowPath::Patient{});
  return slow_path.reentrant() ? -1 : heap.page_heap().release_rate();
}

size_t HeapExtension::GetEstimatedAllocatedSize(size_t size) { return EstimatedSizeInMode(size); }

size_t HeapExtension::GetAllocatedSize(const void* p) {
  return UsableSizeInUseByCall(p, "GetAllocatedSize");
}

MallocExtension::Ownership HeapExtension::GetOwnership(const void* p) {
  const bool owned = OwnsInMode(p);
  return owned ? kOwned : kNotOwned;
}

void HeapExtension::GetFreeListSizes(std::vector<FreeListInfo>* v) { ListFreeLists(v); }

size_t HeapExtension::GetThreadCacheSize() {
  SlowPath slow_path(SlowPath::Patient{});
  return slow_path.reentrant() ? 0 : slow_path.OwnCachedBytes();
}

}  // namespace tcmalloc
