// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The samples that are live.

#ifndef TCMALLOC_HEAP_PROFILE_SAMPLE_TABLE_H_
#define TCMALLOC_HEAP_PROFILE_SAMPLE_TABLE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/relaxed.h"
#include "heap_profile/chunked_array.h"
#include "heap_profile/free_indices.h"
#include "heap_profile/stack_table.h"
#include "pages/page_types.h"
#include "pages/span.h"

namespace tcmalloc {

// The record of a sample.
struct Sample {
  uintptr_t address = 0;
  uint64_t requested = 0;  // bytes that the program asked for
  uint64_t allocated = 0;  // bytes of the block
  double weight = 0;       // blocks for which this one stands
  int64_t time_ns = 0;     // of the allocation, by the monotonic clock
  StackId stack = 0;
  uint32_t thread = 0;     // the kernel's number
  uint32_t alignment = 0;  // that the program asked for, at most 2^31; 0 if it asked for none
  // Of a small block, the object that the program would have got if this were no sample, which may
  // be the block itself; 0 if there is none. If it is kept, it stays in use until the sample is
  // freed.
  uintptr_t twin = 0;
  bool keeps_twin = false;
};

struct SampleTableStats {
  uint64_t samples = 0;   // live
  uint64_t left_out = 0;  // since the start, because the table was full
  size_t mapped_bytes = 0;
};

// Records lie in an array that never moves and describe themselves, so that another process can
// read them. A record has a version that is odd while it holds a sample and grows with each change.
//
// Thread safe, without a lock; async-signal-safe.
class SampleTable {
 public:
  constexpr SampleTable() = default;
  SampleTable(const SampleTable&) = delete;
  SampleTable& operator=(const SampleTable&) = delete;

  // Sets the number of samples beyond which new ones are left out; 0 sets no limit.
  void set_limit(uint64_t samples) { limit_ = samples; }

  // Records a sample. Returns its name, or 0 if it was left out.
  SampleId Add(const Sample& sample);
  // Removes a sample and returns it. Called once for each, by whoever frees its block.
  Sample Remove(SampleId id);
  // Changes the size of a sample's block, and for how many blocks it stands, and returns the sample
  // as it was. Called by the owner of the block.
  Sample Resize(SampleId id, uint64_t requested, uint64_t allocated, double weight);

  // Link a live sample to another one, for the caller's purposes. The caller provides that one
  // thread at a time does so. A new sample has any link.
  SampleId Next(SampleId id) const { return records_[id].next.load(std::memory_order_relaxed); }
  void SetNext(SampleId id, SampleId next) {
    records_[id].next.store(next, std::memory_order_relaxed);
  }
  // Returns the address of a live sample.
  uintptr_t AddressOf(SampleId id) const { return records_[id].address; }

  // Calls f(const Sample&) for each sample that is live during the whole call, and perhaps for
  // others. A sample is given as it was at one moment.
  template <typename F>
  void ForEach(F f) const {
    const uint32_t used = used_.load(std::memory_order_relaxed);
    for (uint32_t id = 1; id <= used; ++id) {
      Sample sample;
      if (Read(id, &sample)) f(sample);
    }
  }

  SampleTableStats stats() const;

 private:
  struct Record {
    std::atomic<uint32_t> version;
    std::atomic<uint32_t> next;  // of a record that is free, or as the users of a sample link it
    Relaxed<uintptr_t> address;
    Relaxed<uint64_t> requested;
    Relaxed<uint64_t> allocated;
    Relaxed<double> weight;
    Relaxed<int64_t> time_ns;
    Relaxed<StackId> stack;
    Relaxed<uint32_t> thread;
    Relaxed<uint64_t> twin;  // see PackTwin
  };
  static_assert(sizeof(Record) == 64);

  // Packs the twin, which is a multiple of 8 and less than 2^57, with the bit that says if it is
  // kept, and the width of the alignment.
  static uint64_t PackTwin(const Sample& sample);

  SampleId NewRecord();
  static void Write(Record& record, const Sample& sample);
  static Sample Copy(const Record& record);
  bool Read(SampleId id, Sample* sample) const;

  // A few lie inside, because small programs have no more.
  ChunkedArray<Record, 8, FirstChunk::kInside> records_;
  std::atomic<uint32_t> used_{0};  // records that ever had a sample: 1 to used_
  FreeIndices free_;
  Relaxed<uint64_t> limit_ = 0;
  std::atomic<uint64_t> live_{0};
  std::atomic<uint64_t> left_out_{0};
};

}  // namespace tcmalloc

#endif  // TCMALLOC_HEAP_PROFILE_SAMPLE_TABLE_H_
