// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "profile_format/text_profile.h"

#include <cstddef>
#include <string_view>

#include "allocator/slow_path.h"
#include "base/message.h"
#include "heap/heap.h"
#include "profile_format/mappings.h"

namespace tcmalloc {
namespace {

constexpr std::string_view kMappedLibraries = "\nMAPPED_LIBRARIES:\n";

// Formats objects and bytes twice: the format has a place for the present ones and one for all
// since the start.
Message Counts(uint64_t count, uint64_t bytes) {
  Message counts;
  for (const char* between : {"", " ["}) counts << between << count << ": " << bytes;
  counts << "] @";
  return counts;
}

struct Totals {
  uint64_t count = 0;
  uint64_t bytes = 0;
};

void AddTo(const StackRecord& record, void* totals) {
  static_cast<Totals*>(totals)->count += record.count;
  static_cast<Totals*>(totals)->bytes += record.bytes;
}

void WriteRecord(const StackRecord& record, void* sink) {
  WriteTextRecord(*static_cast<ByteSink*>(sink), record);
}

// Writes all records below a head line that ends in `format`. Records may come and go between the
// head and the rest. `visit` is like VisitSamples. Returns false if there are none in this library.
template <typename Visit>
bool WriteRecords(ByteSink& sink, Visit visit, const Message& format) {
  Totals totals;
  if (!visit(AddTo, &totals)) return false;
  WriteTextHead(sink, totals.count, totals.bytes, format.view());
  visit(WriteRecord, &sink);
  WriteMappedLibraries(sink);
  return true;
}

}  // namespace

void WriteTextHead(ByteSink& sink, uint64_t count, uint64_t bytes, std::string_view format) {
  sink.WriteLine(Message() << "heap profile: " << Counts(count, bytes).view() << " " << format);
}

void WriteTextRecord(ByteSink& sink, const StackRecord& record) {
  Message line = Counts(record.count, record.bytes);
  for (const uintptr_t frame : record.frames) {
    // A line of many frames is longer than a message.
    Message next;
    next << " " << reinterpret_cast<const void*>(frame);
    sink.Write(line.view());
    line = next;
  }
  sink.WriteLine(line);
}

void WriteMappedLibraries(ByteSink& sink) {
  sink.Write(kMappedLibraries);
  CopyOwnMaps(sink);
}

void WriteMappedLibraries(ByteSink& sink, const MapsText& text) {
  sink.Write(kMappedLibraries);
  sink.Write(text.view());
}

HeapGrowth CurrentHeapGrowth() {
  SlowPath slow_path(SlowPath::Patient{});
  if (slow_path.reentrant()) return {};
  const PageHeapStats pages = heap.page_heap().stats();
  return {.count = pages.growths, .bytes = pages.system.bytes()};
}

void WriteGrowthProfile(ByteSink& sink) {
  if (WriteRecords(sink, VisitGrowths, Message() << "growth")) return;
  const HeapGrowth growth = CurrentHeapGrowth();
  WriteTextHead(sink, growth.count, growth.bytes, "growth");
  sink.WriteLine(Counts(growth.count, growth.bytes));
  WriteMappedLibraries(sink);
}

bool WriteHeapSample(ByteSink& sink) {
  const uint64_t period = heap.sample_period();
  return WriteRecords(sink, VisitSamples, Message() << "heap_v2/" << period);
}

void WriteHeapRecords(ByteSink& sink, const StackRecords& records, uint64_t period) {
  const auto visit = [&records](StackRecordVisitor visitor, void* argument) {
    records.ForEach(visitor, argument);
    return true;
  };
  WriteRecords(sink, visit, Message() << "heap_v2/" << period);
}

}  // namespace tcmalloc
