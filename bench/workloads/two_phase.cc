// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A first thread allocates much, frees all of it and ends; then a second thread does the same. The
// second phase should live on the memory of the first one.
#include <thread>
#include <utility>

#include "common/block.h"
#include "common/options.h"
#include "common/process_memory.h"
#include "common/random.h"
#include "common/record.h"
#include "common/report.h"

namespace tcmalloc::bench {
namespace {

constexpr size_t kMinSize = 32;

// Returns how many records the phase allocated and freed.
uint64_t RunPhase(uint64_t bytes, size_t max_size, uint64_t seed) {
  Random random(seed);
  Record* records = nullptr;
  for (uint64_t allocated = 0; allocated < bytes; allocated += records->size) {
    Record* record = NewRecord(random.Between(kMinSize, max_size));
    record->next = records;
    records = record;
  }
  uint64_t count = 0;
  for (; records != nullptr; ++count) FreeRecord(std::exchange(records, records->next));
  return count;
}

int Main(int argc, char** argv) {
  uint64_t bytes = uint64_t{300} << 20;
  uint64_t max_size = 256;
  Options options("two_phase", "The memory of a first thread must serve a second one.");
  options.Number("bytes", &bytes, 1, uint64_t{1} << 40, "bytes requested in each phase");
  options.Number("max-size", &max_size, kMinSize, 1 << 30, "bytes in the largest record");
  options.Parse(argc, argv);

  uint64_t ops = 0;
  uint64_t peaks[2] = {0, 0};
  const Stopwatch stopwatch;
  for (uint64_t phase = 0; phase < 2; ++phase) {
    std::thread([&] { ops += RunPhase(bytes, max_size, phase); }).join();
    peaks[phase] = PeakResidentBytes();
  }
  const Elapsed elapsed = stopwatch.Read();
  Report(ops, elapsed)
      .Add("first_peak_bytes", peaks[0])
      .Add("peak_bytes", peaks[1])
      .Add("peak_ratio", static_cast<double>(peaks[1]) / static_cast<double>(peaks[0]))
      .Add("resident_after_bytes", ResidentBytes())
      .Print();
  return 0;
}

}  // namespace
}  // namespace tcmalloc::bench

int main(int argc, char** argv) { return tcmalloc::bench::Main(argc, argv); }
