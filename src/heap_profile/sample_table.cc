// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "heap_profile/sample_table.h"

#include <bit>

namespace tcmalloc {
namespace {

// Of a packed twin: its lowest bit says if it is kept.
constexpr uint64_t kMostWidth = 63;  // of the alignment
constexpr int kTwinShift = 7;
constexpr int kObjectShift = 3;

}  // namespace

uint64_t SampleTable::PackTwin(const Sample& sample) {
  const auto width = static_cast<uint64_t>(std::bit_width(sample.alignment));
  return uint64_t{sample.twin} >> kObjectShift << kTwinShift | width << 1 |
         uint64_t{sample.keeps_twin};
}

// Returns a record whose version is even, or 0 if no memory can be had.
SampleId SampleTable::NewRecord() {
  const auto link = [this](uint32_t id) -> std::atomic<uint32_t>& { return records_[id].next; };
  if (const SampleId id = free_.Pop(link)) return id;
  uint32_t used = used_.load(std::memory_order_relaxed);
  do {
    if (!records_.Ensure(used + 1)) return 0;
  } while (!used_.compare_exchange_weak(used, used + 1, std::memory_order_relaxed));
  return used + 1;
}

void SampleTable::Write(Record& record, const Sample& sample) {
  record.address = sample.address;
  record.requested = sample.requested;
  record.allocated = sample.allocated;
  record.weight = sample.weight;
  record.time_ns = sample.time_ns;
  record.stack = sample.stack;
  record.thread = sample.thread;
  record.twin = PackTwin(sample);
}

Sample SampleTable::Copy(const Record& record) {
  const uint64_t twin = record.twin;
  const uint64_t width = twin >> 1 & kMostWidth;
  return {.address = record.address,
          .requested = record.requested,
          .allocated = record.allocated,
          .weight = record.weight,
          .time_ns = record.time_ns,
          .stack = record.stack,
          .thread = record.thread,
          .alignment = width == 0 ? 0 : uint32_t{1} << (width - 1),
          .twin = static_cast<uintptr_t>(twin >> kTwinShift << kObjectShift),
          .keeps_twin = (twin & 1) != 0};
}

SampleId SampleTable::Add(const Sample& sample) {
  const uint64_t limit = limit_;
  const bool fits = live_.fetch_add(1, std::memory_order_relaxed) < limit || limit == 0;
  const SampleId id = fits ? NewRecord() : 0;
  if (id == 0) {
    live_.fetch_sub(1, std::memory_order_relaxed);
    left_out_.fetch_add(1, std::memory_order_relaxed);
    return 0;
  }
  Record& record = records_[id];
  Write(record, sample);
  // Release pairs with the acquire in Read and publishes the sample.
  record.version.fetch_add(1, std::memory_order_release);
  return id;
}

Sample SampleTable::Remove(SampleId id) {
  Record& record = records_[id];
  const Sample sample = Copy(record);
  // Acquire keeps the writes of the record's next sample behind it, and pairs with the fence in
  // Read.
  record.version.fetch_add(1, std::memory_order_acquire);
  free_.Push(id, [this](uint32_t index) -> std::atomic<uint32_t>& { return records_[index].next; });
  live_.fetch_sub(1, std::memory_order_relaxed);
  return sample;
}

Sample SampleTable::Resize(SampleId id, uint64_t requested, uint64_t allocated, double weight) {
  Record& record = records_[id];
  const Sample old = Copy(record);
  // The version is even for a moment.
  record.version.fetch_add(1, std::memory_order_relaxed);
  // Release pairs with the fence in Read: whoever copied a new size sees that the version changed.
  std::atomic_thread_fence(std::memory_order_release);
  record.requested = requested;
  record.allocated = allocated;
  record.weight = weight;
  // Release pairs with the acquire in Read and publishes the sample.
  record.version.fetch_add(1, std::memory_order_release);
  return old;
}

// Copies a sample as it was at one moment. Returns false if the record has none.
bool SampleTable::Read(SampleId id, Sample* sample) const {
  const Record* found = records_.Find(id);
  if (found == nullptr) return false;
  const Record& record = *found;
  // Acquire pairs with the releases in Add and Resize.
  uint32_t version = record.version.load(std::memory_order_acquire);
  while (version % 2 == 1) {
    *sample = Copy(record);
    // Acquire pairs with the exchanges in Remove and Resize: if the copy has anything of a later
    // sample, the version is a later one, too.
    std::atomic_thread_fence(std::memory_order_acquire);
    const uint32_t after = record.version.load(std::memory_order_relaxed);
    if (after == version) return true;
    version = after;
  }
  return false;
}

SampleTableStats SampleTable::stats() const {
  return {.samples = live_.load(std::memory_order_relaxed),
          .left_out = left_out_.load(std::memory_order_relaxed),
          .mapped_bytes = records_.mapped_bytes()};
}

}  // namespace tcmalloc
