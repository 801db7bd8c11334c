// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A program that runs long: the sizes it asks for drift from epoch to epoch, most blocks die young
// and some survive for many epochs, scattered among the dead. The live bytes stay near a bound; the
// peak of resident memory over that bound is what fragmentation cost.
#include <utility>

#include "common/options.h"
#include "common/process_memory.h"
#include "common/random.h"
#include "common/record.h"
#include "common/report.h"

namespace tcmalloc::bench {
namespace {

constexpr uint64_t kSurvivorPercent = 5;
constexpr size_t kMinCentre = 64;

struct Settings {
  uint64_t live_bytes = uint64_t{64} << 20;
  uint64_t max_size = 16384;
  uint64_t epochs = 18;
};

// The centre of the sizes of an epoch goes up and down between the smallest and the largest in
// steps of a factor of two, so that every size comes back after the heap was formed by others.
size_t CentreOf(uint64_t epoch, size_t max_size) {
  size_t steps = 1;
  while (kMinCentre << (steps + 1) <= max_size / 2) ++steps;
  const size_t phase = epoch % (2 * steps);
  return kMinCentre << (phase <= steps ? phase : 2 * steps - phase);
}

// The live records, the oldest first.
class Heap {
 public:
  explicit Heap(const Settings& settings) : settings_(settings), random_(0) {}

  // Allocates twice the bound in records around a size, freeing old ones to stay below the bound.
  void RunEpoch(uint64_t epoch) {
    const size_t centre = CentreOf(epoch, settings_.max_size);
    for (uint64_t bytes = 0; bytes < settings_.live_bytes * 2; ++allocations_) {
      const size_t size = random_.Between(centre / 2, centre * 2);
      while (live_ + size > settings_.live_bytes) AgeOldest();
      Append(NewRecord(size));
      live_ += size;
      bytes += size;
    }
  }

  void FreeAll() {
    while (oldest_ != nullptr) Free(RemoveOldest());
    if (live_ != 0) Fail("%zu bytes of records were lost", live_);
  }

  uint64_t allocations() const { return allocations_; }

 private:
  void Append(Record* record) {
    (oldest_ == nullptr ? oldest_ : youngest_->next) = record;
    youngest_ = record;
    record->next = nullptr;
  }

  Record* RemoveOldest() {
    if (oldest_ == nullptr) Fail("%zu bytes of records were lost", live_);
    return std::exchange(oldest_, oldest_->next);
  }

  // A survivor goes to the young end instead of being freed.
  void AgeOldest() {
    Record* record = RemoveOldest();
    if (random_.Percent(kSurvivorPercent)) {
      Append(record);
      return;
    }
    Free(record);
  }

  void Free(Record* record) {
    live_ -= record->size;
    FreeRecord(record);
  }

  const Settings& settings_;
  Random random_;
  Record* oldest_ = nullptr;
  Record* youngest_ = nullptr;
  uint64_t live_ = 0;
  uint64_t allocations_ = 0;
};

int Main(int argc, char** argv) {
  Settings settings;
  Options options("fragmentation", "Sizes drift over time while some blocks survive.");
  options.Number("live-bytes", &settings.live_bytes, 1 << 20, uint64_t{1} << 40,
                 "bytes that live at a time");
  options.Number("max-size", &settings.max_size, kMinCentre * 4, 1 << 18,
                 "bytes in the largest block");
  options.Number("epochs", &settings.epochs, 1, UINT64_MAX, "changes of size");
  options.Parse(argc, argv);

  Heap heap(settings);
  const uint64_t resident_before = ResidentBytes();
  const Stopwatch stopwatch;
  for (uint64_t epoch = 0; epoch < settings.epochs; ++epoch) heap.RunEpoch(epoch);
  Elapsed elapsed = stopwatch.Read();
  const uint64_t peak = PeakResidentBytes();
  const Stopwatch free_stopwatch;
  heap.FreeAll();
  elapsed += free_stopwatch.Read();
  Report(heap.allocations(), elapsed)
      .Add("peak_bytes", peak)
      .Add("peak_per_live",
           static_cast<double>(peak - resident_before) / static_cast<double>(settings.live_bytes))
      .Print();
  return 0;
}

}  // namespace
}  // namespace tcmalloc::bench

int main(int argc, char** argv) { return tcmalloc::bench::Main(argc, argv); }
