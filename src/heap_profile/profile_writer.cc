// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "heap_profile/profile_writer.h"

#include "base/message.h"
#include "heap_profile/profile_path.h"
#include "heap_profile/residency.h"
#include "heap_profile/whole_blocks.h"
#include "options/options.h"
#include "profile_format/profile.h"
#include "profile_format/profile_file.h"
#include "profile_format/proto_writer.h"
#include "profile_format/text_profile.h"

namespace tcmalloc {
namespace {

constexpr ValueType kInUse[] = {{"inuse_objects", "count"},
                                {"inuse_space", "bytes"},
                                {"inuse_requested", "bytes"},
                                {"resident_space", "bytes"},
                                {"swapped_space", "bytes"}};
constexpr size_t kLiveTypes = 3;  // of a heap that is gone, whose pages cannot be asked for
constexpr ValueType kAllocated[] = {
    {"alloc_objects", "count"}, {"alloc_space", "bytes"}, {"alloc_requested", "bytes"}};
constexpr ValueType kLifetimes[] = {
    {"objects", "count"}, {"space", "bytes"}, {"lifetime", "nanoseconds"}};
constexpr ValueType kPinned[] = {{"objects", "count"}, {"pinned_space", "bytes"}};
constexpr ValueType kGrowth[] = {{"objects", "count"}, {"space", "bytes"}};

// Frames of the allocator in programs that link it statically. Those of the shared library are not
// recorded.
constexpr std::string_view kOwnFrames =
    "(tcmalloc::|__?libc_)?(malloc|calloc|realloc|reallocarray|free|memalign|aligned_alloc|"
    "posix_memalign|valloc|pvalloc)|operator new(\\[\\])?|tcmalloc::.*|tc_.*";

std::span<const ValueType> TypesOf(ProfileKind kind) {
  switch (kind) {
    case ProfileKind::kAllocations:
      return kAllocated;
    case ProfileKind::kLifetimes:
      return kLifetimes;
    case ProfileKind::kFragmentation:
      return kPinned;
    case ProfileKind::kPeakHeap:
      return std::span(kInUse).first(kLiveTypes);
    default:
      return kInUse;
  }
}

ProfileHeader HeaderOf(const CollectedProfile& profile) {
  const std::span<const ValueType> types = TypesOf(profile.kind);
  return {.sample_types = types,
          .default_sample_type = types[1].type,
          .period_type = {"space", "bytes"},
          .period = static_cast<int64_t>(profile.period),
          .time_ns = profile.wall_begin_ns,
          .duration_ns = profile.end_ns - profile.begin_ns,
          .comments = {},
          .drop_frames = kOwnFrames};
}

std::string_view LifetimeRange(int64_t ns) {
  if (ns <= 1'000'000) return "at most 1 ms";
  return ns <= 1'000'000'000 ? "at most 1 s" : "longer than 1 s";
}

// Adds the rows of a profile to a writer.
class RowWriter {
 public:
  RowWriter(const CollectedProfile& profile, ProtoWriter& writer)
      : profile_(profile), writer_(writer), reader_(stack_table) {
    if (profile.kind == ProfileKind::kHeap) pages_ = PagesOf(profile.rows.rows());
  }

  void WriteAll() {
    const std::span<const ProfileRow> rows = profile_.rows.rows();
    const bool fragmentation = profile_.kind == ProfileKind::kFragmentation;
    for (size_t i = 0; i < rows.size(); ++i) {
      if (!fragmentation || rows[i].pinned != 0) Write(i, rows[i]);
    }
  }

 private:
  // Returns what a row counts of each block, in the order of the types behind the first one.
  struct Counted {
    double values[kMostValues] = {};
  };
  Counted CountedOf(size_t index, const ProfileRow& row) const {
    const auto number = [](auto value) { return static_cast<double>(value); };
    const Sample& sample = row.sample;
    if (profile_.kind == ProfileKind::kFragmentation) return {{row.pinned}};
    if (profile_.kind == ProfileKind::kLifetimes) {
      return {{number(sample.allocated), number(row.end_ns - sample.time_ns)}};
    }
    Counted counted{{number(sample.allocated), number(sample.requested)}};
    if (index < pages_.size()) {
      counted.values[2] = number(pages_[index].resident);
      counted.values[3] = number(pages_[index].swapped);
    }
    return counted;
  }

  void Write(size_t index, const ProfileRow& row) {
    const Sample& sample = row.sample;
    const bool lifetimes = profile_.kind == ProfileKind::kLifetimes;
    const int64_t lifetime = row.end_ns - sample.time_ns;
    const Counted counted = CountedOf(index, row);
    int64_t values[kMostValues] = {blocks_.Round(sample.weight)};
    const size_t types = TypesOf(profile_.kind).size();
    for (size_t i = 1; i < types; ++i) {
      values[i] = static_cast<int64_t>(sample.weight * counted.values[i - 1]);
    }
    const SampleLabel labels[] = {
        {.key = "bytes",
         .number = static_cast<int64_t>(sample.requested),
         .unit = "bytes",
         .text = {}},
        {.key = "thread", .number = sample.thread, .unit = {}, .text = {}},
        {.key = "lifetime", .number = 0, .unit = {}, .text = LifetimeRange(lifetime)},
        {.key = "censored", .number = 0, .unit = {}, .text = row.censored ? "yes" : "no"}};
    std::span<const uintptr_t> stack;
    if (sample.stack != 0) stack = reader_.frames(sample.stack);
    writer_.Add({.stack = stack,
                 .values = std::span(values).first(types),
                 .labels = std::span(labels).first(lifetimes ? std::size(labels) : 2)});
  }

  const CollectedProfile& profile_;
  ProtoWriter& writer_;
  StackTable::Reader reader_;
  WholeBlocks blocks_;
  Scratch<PageBytes> pages_;  // of each row, in a profile of the present
};

// The rows of a profile as samples of gperftools, which count once each.
class RowRecords final : public StackRecords {
 public:
  explicit RowRecords(const CollectedProfile& profile) : profile_(profile) {}

  void ForEach(StackRecordVisitor visit, void* argument) const override {
    const StackTable::Reader reader(stack_table);
    for (const ProfileRow& row : profile_.rows.rows()) {
      StackRecord record{.count = 1, .bytes = row.sample.requested, .frames = {}};
      if (row.sample.stack != 0) record.frames = reader.frames(row.sample.stack);
      visit(record, argument);
    }
  }

 private:
  const CollectedProfile& profile_;
};

bool IsProto(const char* path) {
  return heap.options().profile_format == ProfileFormatOption::kProto || IsProtoName(path);
}

bool HasText(ProfileKind kind) {
  return kind != ProfileKind::kLifetimes && kind != ProfileKind::kFragmentation;
}

// Returns false if there was no memory for all of it.
bool WriteGrowthProto(ByteSink& out) {
  ProtoWriter writer({.sample_types = kGrowth,
                      .default_sample_type = kGrowth[1].type,
                      .period_type = {"space", "bytes"},
                      .period = 1,
                      .comments = {},
                      .drop_frames = kOwnFrames},
                     out);
  VisitGrowths(
      [](const StackRecord& record, void* to) {
        const int64_t values[] = {static_cast<int64_t>(record.count),
                                  static_cast<int64_t>(record.bytes)};
        static_cast<ProtoWriter*>(to)->Add(
            {.stack = record.frames, .values = values, .labels = {}});
      },
      &writer);
  return writer.Finish();
}

// Returns false if there was no memory for all of it.
bool WriteLiveProto(ByteSink& out) {
  CollectedProfile* profile = CollectedProfile::Take(ProfileKind::kHeap);
  if (profile == nullptr) return false;
  const bool whole = WriteProto(*profile, out);
  profile->Delete();
  return whole;
}

}  // namespace

bool WriteProto(const CollectedProfile& profile, ByteSink& out) {
  ProfileHeader header = HeaderOf(profile);
  Message left_out;
  left_out << profile.rows.left_out() << " samples are left out: see TCMALLOC_MAX_SAMPLES";
  const std::string_view comments[] = {left_out.view()};
  if (profile.rows.left_out() != 0) header.comments = comments;
  ProtoWriter writer(header, out);
  RowWriter(profile, writer).WriteAll();
  return writer.Finish();
}

bool WriteHeapProfileFile(const char* path) {
  ProfileFile file(path);
  if (!file.ok()) return false;
  const bool whole = IsProto(path) ? WriteLiveProto(file) : WriteHeapSample(file);
  if (!whole) file.Fail("no memory for all of it");
  return file.Complete();
}

bool WriteProfileFile(const CollectedProfile& profile, const char* path) {
  ProfileFile file(path);
  if (!file.ok()) return false;
  if (!IsProto(path) && HasText(profile.kind)) {
    WriteHeapRecords(file, RowRecords(profile), profile.period);
    return file.Complete();
  }
  return WriteProto(profile, file) && file.Complete();
}

bool WriteGrowthProfileFile(const char* path) {
  ProfileFile file(path);
  if (!file.ok()) return false;
  if (!IsProto(path)) {
    WriteGrowthProfile(file);
    return file.Complete();
  }
  return WriteGrowthProto(file) && file.Complete();
}

}  // namespace tcmalloc
