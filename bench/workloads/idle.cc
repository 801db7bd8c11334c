// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A program that fills its heap, frees most of it and has nothing more to do: what stays resident
// is lost to all others. After the pause it allocates a little, which is when an allocator without
// a thread of its own can notice that time has passed.
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/options.h"
#include "common/process_memory.h"
#include "common/random.h"
#include "common/record.h"
#include "common/report.h"

namespace tcmalloc::bench {
namespace {

struct Settings {
  uint64_t bytes = uint64_t{200} << 20;
  uint64_t min_size = 100;
  uint64_t max_size = 100;
  uint64_t free_percent = 100;
  uint64_t pause_seconds = 10;
  uint64_t allocations = 1000;
};

class Program {
 public:
  explicit Program(const Settings& settings) : settings_(settings), random_(0) {}

  // Every byte is written, so that all of it is resident.
  void Fill() {
    for (uint64_t bytes = 0; bytes < settings_.bytes; bytes += records_->size) {
      Record* record = NewFilledRecord();
      record->next = records_;
      records_ = record;
      ++ops_;
    }
  }

  // Leaves a part of the records, chosen at random. Returns their bytes.
  uint64_t FreeMost() {
    uint64_t live = 0;
    for (Record* rest = std::exchange(records_, nullptr); rest != nullptr;) {
      Record* record = std::exchange(rest, rest->next);
      if (random_.Percent(settings_.free_percent)) {
        FreeRecord(record);
      } else {
        live += record->size;
        record->next = records_;
        records_ = record;
      }
    }
    return live;
  }

  // Allocates and frees. Returns how long the longest of the allocations took, in seconds.
  double Continue() {
    double longest = 0;
    for (uint64_t i = 0; i < settings_.allocations; ++i) {
      const Stopwatch stopwatch;
      Record* record = NewRecord(Size());
      longest = std::max(longest, stopwatch.Read().seconds);
      FreeRecord(record);
    }
    return longest;
  }

  uint64_t ops() const { return ops_; }

 private:
  size_t Size() { return random_.Between(settings_.min_size, settings_.max_size); }
  Record* NewFilledRecord() {
    Record* record = NewRecord(Size());
    std::memset(record + 1, 1, record->size - sizeof(Record));
    return record;
  }

  const Settings& settings_;
  Random random_;
  Record* records_ = nullptr;
  uint64_t ops_ = 0;
};

Settings ParseSettings(int argc, char** argv) {
  Settings settings;
  Options options("idle", "The heap is filled, most of it is freed, and nothing happens.");
  options.Number("bytes", &settings.bytes, 1, uint64_t{1} << 40, "bytes that are allocated");
  options.Number("min-size", &settings.min_size, sizeof(Record), 1 << 30, "the smallest block");
  options.Number("max-size", &settings.max_size, sizeof(Record), 1 << 30, "the largest block");
  options.Number("free-percent", &settings.free_percent, 0, 100, "blocks that are freed");
  options.Number("pause-seconds", &settings.pause_seconds, 0, 3600, "until the program goes on");
  options.Number("allocations", &settings.allocations, 0, UINT64_MAX, "after the pause");
  options.Parse(argc, argv);
  if (settings.min_size > settings.max_size) options.Reject("--min-size is above --max-size");
  return settings;
}

int Main(int argc, char** argv) {
  const Settings settings = ParseSettings(argc, argv);
  Program program(settings);
  const Stopwatch stopwatch;
  program.Fill();
  const uint64_t live = program.FreeMost();
  const Elapsed elapsed = stopwatch.Read();
  const uint64_t freed = ResidentBytes();
  sleep(static_cast<unsigned>(settings.pause_seconds));
  const uint64_t paused = ResidentBytes();
  const double longest = program.Continue();
  Report(program.ops(), elapsed)
      .Add("live_bytes", live)
      .Add("freed_resident_bytes", freed)
      .Add("paused_resident_bytes", paused)
      .Add("resident_after_bytes", ResidentBytes())
      .Add("longest_allocation_ns", longest * 1e9)
      .Print();
  return 0;
}

}  // namespace
}  // namespace tcmalloc::bench

int main(int argc, char** argv) { return tcmalloc::bench::Main(argc, argv); }
