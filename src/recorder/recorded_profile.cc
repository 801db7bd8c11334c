// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "recorder/recorded_profile.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/message.h"
#include "heap/heap.h"
#include "profile_format/mappings.h"
#include "profile_format/option_comments.h"
#include "profile_format/profile.h"
#include "profile_format/proto_writer.h"
#include "profile_format/text_profile.h"
#include "system/clock.h"

namespace tcmalloc {
namespace {

constexpr ValueType kTypes[] = {{"alloc_objects", "count"},
                                {"alloc_space", "bytes"},
                                {"inuse_objects", "count"},
                                {"inuse_space", "bytes"}};

struct Row {
  std::span<const uintptr_t> frames;
  StackTotals totals;
};

// The rows of a profile as they were at one moment.
class Rows {
 public:
  explicit Rows(const RecordedStacks& stacks) : rows_(Count(stacks)) {
    stacks.ForEach([this](std::span<const uintptr_t> frames, const StackTotals& totals) {
      if (count_ < rows_.size()) rows_[count_++] = {frames, totals};
    });
    std::sort(rows_.data(), rows_.data() + count_, [](const Row& a, const Row& b) {
      return a.totals.bytes_in_use() > b.totals.bytes_in_use();
    });
  }

  bool ok() const { return rows_.data() != nullptr; }
  std::span<const Row> all() const { return {rows_.data(), count_}; }

 private:
  // Leaves room for stacks that come meanwhile.
  static size_t Count(const RecordedStacks& stacks) {
    size_t count = 1024;
    stacks.ForEach([&](std::span<const uintptr_t>, const StackTotals&) { ++count; });
    return count;
  }

  Scratch<Row> rows_;
  size_t count_ = 0;
};

// Appends a number, with blanks in front up to `width`.
void AppendPadded(Message& line, uint64_t number, size_t width) {
  Message digits;
  digits << number;
  for (size_t length = digits.view().size(); length < width; ++length) line << " ";
  line << digits.view();
}

void AppendTotals(Message& line, const StackTotals& totals) {
  AppendPadded(line, totals.objects_in_use(), 6);
  line << ": ";
  AppendPadded(line, totals.bytes_in_use(), 8);
  line << " [";
  AppendPadded(line, totals.allocations, 6);
  line << ": ";
  AppendPadded(line, totals.allocated_bytes, 8);
  line << "] @";
}

void WriteRow(const Row& row, ByteSink& sink) {
  Message totals;
  AppendTotals(totals, row.totals);
  sink.Write(totals.view());
  for (const uintptr_t frame : row.frames) {
    Message address;
    address << " " << reinterpret_cast<const void*>(frame);
    sink.Write(address.view());
  }
  sink.Write("\n");
}

}  // namespace

void BufferedSink::Write(std::string_view bytes) {
  if (bytes.size() > buffer_.size() - used_) Flush();
  if (bytes.size() > buffer_.size()) return sink_.Write(bytes);
  std::memcpy(buffer_.data() + used_, bytes.data(), bytes.size());
  used_ += bytes.size();
}

void BufferedSink::Flush() {
  if (used_ != 0) sink_.Write({buffer_.data(), used_});
  used_ = 0;
}

bool WriteRecordedText(const RecordedStacks& stacks, ByteSink& sink) {
  const Rows rows(stacks);
  if (!rows.ok()) return false;
  BufferedSink buffered(sink);
  StackTotals sum;
  for (const Row& row : rows.all()) sum.Add(row.totals);
  Message head;
  head << "heap profile: ";
  AppendTotals(head, sum);
  head << " heapprofile";
  buffered.WriteLine(head);
  for (const Row& row : rows.all()) WriteRow(row, buffered);
  WriteMappedLibraries(buffered);
  return true;
}

bool WriteRecordedProto(const RecordedStacks& stacks, ByteSink& sink) {
  const Rows rows(stacks);
  if (!rows.ok()) return false;
  const Mappings mappings;
  ProtoWriter writer({.sample_types = kTypes,
                      .default_sample_type = "inuse_space",
                      .period_type = {"space", "bytes"},
                      .period = 1,
                      .time_ns = WallNanoseconds(),
                      .duration_ns = 0,
                      .comments = {},
                      .drop_frames = {}},
                     mappings, sink);
  AddOptionComments(heap.options(), writer);
  for (const Row& row : rows.all()) {
    const int64_t values[] = {static_cast<int64_t>(row.totals.allocations),
                              static_cast<int64_t>(row.totals.allocated_bytes),
                              static_cast<int64_t>(row.totals.objects_in_use()),
                              static_cast<int64_t>(row.totals.bytes_in_use())};
    writer.Add({.stack = row.frames, .values = values, .labels = {}});
  }
  return writer.Finish();
}

}  // namespace tcmalloc
