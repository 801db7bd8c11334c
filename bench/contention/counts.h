// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Counters of the instrumented library.

#ifndef TCMALLOC_BENCH_CONTENTION_COUNTS_H_
#define TCMALLOC_BENCH_CONTENTION_COUNTS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tcmalloc::bench {

// Places in the code, by return address, and how often each was counted. Open addressing; what
// finds no room is not told apart. Thread safe.
class PlaceCounts {
 public:
  struct Place {
    std::atomic<const void*> address{nullptr};
    std::atomic<uint64_t> count{0};
  };
  static constexpr size_t kPlaces = 4096;

  void Add(const void* address) {
    const auto start = reinterpret_cast<uintptr_t>(address) * 0x9e3779b97f4a7c15 >> 52;
    for (size_t i = 0; i < kPlaces; ++i) {
      Place& place = places_[(start + i) % kPlaces];
      const void* seen = place.address.load(std::memory_order_relaxed);
      if (seen == nullptr) {
        place.address.compare_exchange_strong(seen, address, std::memory_order_relaxed);
        if (seen == nullptr) seen = address;
      }
      if (seen != address) continue;
      place.count.fetch_add(1, std::memory_order_relaxed);
      return;
    }
  }

  // Calls f(address, count).
  template <typename F>
  void ForEach(F f) const {
    for (const Place& place : places_) {
      const uint64_t count = place.count.load(std::memory_order_relaxed);
      if (count > 0) f(place.address.load(std::memory_order_relaxed), count);
    }
  }

 private:
  Place places_[kPlaces];
};

struct Counts {
  std::atomic<uint64_t> shared_by_threads{0};
  std::atomic<uint64_t> shared_by_cpus{0};
  std::atomic<uint64_t> displaced{0};
  PlaceCounts places;  // of the writes shared by threads
};

extern constinit Counts counts;

// `place` is the code that reads or writes.
void CountRead(const volatile void* address);
void CountWrite(const volatile void* address, const void* place);

}  // namespace tcmalloc::bench

#endif  // TCMALLOC_BENCH_CONTENTION_COUNTS_H_
