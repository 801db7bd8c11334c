// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "heap_profile/profile_writer.h"

#include <algorithm>
#include <optional>

#include "base/message.h"
#include "heap_profile/residency.h"
#include "heap_profile/suspects.h"
#include "heap_profile/text_samples.h"
#include "heap_profile/whole_blocks.h"
#include "options/options.h"
#include "profile_format/mappings.h"
#include "profile_format/option_comments.h"
#include "profile_format/profile.h"
#include "profile_format/profile_file.h"
#include "profile_format/proto_name.h"
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

// Frames of the allocator in programs that link it statically. Frames of the shared library are not
// recorded.
constexpr std::string_view kOwnFrames =
    "(tcmalloc::|__?libc_)?(malloc|calloc|realloc|reallocarray|free|memalign|aligned_alloc|"
    "posix_memalign|valloc|pvalloc)|operator new(\\[\\])?|tcmalloc::.*|"
    "tc_(malloc(_skip_new_handler)?|calloc|realloc|memalign|posix_memalign|valloc|pvalloc|"
    "new(array)?(_nothrow|_aligned|_aligned_nothrow)?)";

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

// The suspects of a profile of the present, found by their stacks.
class SuspectsOf {
 public:
  explicit SuspectsOf(const CollectedProfile& profile) : found_(kMostSuspects) {
    const std::span<const ProfileRow> rows = profile.rows.rows();
    const Scratch<AgedSample> samples(rows.size() + 1);
    if (samples.data() == nullptr || found_.data() == nullptr) return;
    for (size_t i = 0; i < rows.size(); ++i) {
      const Sample& sample = rows[i].sample;
      samples[i] = {.stack = sample.stack,
                    .time_ns = sample.time_ns,
                    .blocks = sample.weight,
                    .bytes = sample.weight * static_cast<double>(sample.allocated)};
    }
    count_ = FindSuspects(samples.data(), rows.size(), WatchedSince(), profile.begin_ns,
                          found_.data(), kMostSuspects);
    std::sort(found_.data(), found_.data() + count_,
              [](const Suspect& a, const Suspect& b) { return a.stack < b.stack; });
  }

  // Returns null for a stack that is none.
  const Suspect* Find(uint32_t stack) const {
    const Suspect* begin = found_.data();
    const Suspect* end = begin + count_;
    const Suspect* at = std::lower_bound(
        begin, end, stack,
        [](const Suspect& suspect, uint32_t wanted) { return suspect.stack < wanted; });
    return at != end && at->stack == stack ? at : nullptr;
  }

 private:
  static constexpr size_t kMostSuspects = 1024;

  Scratch<Suspect> found_;
  size_t count_ = 0;
};

// The labels of a row.
class RowLabels {
 public:
  void AddNumber(std::string_view key, int64_t number, std::string_view unit) {
    labels_[count_++] = {.key = key, .number = number, .unit = unit, .text = {}};
  }
  void AddText(std::string_view key, std::string_view text) {
    labels_[count_++] = {.key = key, .number = 0, .unit = {}, .text = text};
  }
  std::span<const SampleLabel> view() const { return {labels_, count_}; }

 private:
  SampleLabel labels_[kMostLabels];
  size_t count_ = 0;
};

// Adds the rows of a profile to a writer.
class RowWriter {
 public:
  RowWriter(const CollectedProfile& profile, ProtoWriter& writer)
      : profile_(profile), writer_(writer), reader_(stack_table) {
    if (profile.kind != ProfileKind::kHeap) return;
    pages_ = PagesOf(profile.rows.rows());
    suspects_.emplace(profile);
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
    const Counted counted = CountedOf(index, row);
    int64_t values[kMostValues] = {blocks_.Round(sample.weight)};
    const size_t types = TypesOf(profile_.kind).size();
    for (size_t i = 1; i < types; ++i) {
      values[i] = static_cast<int64_t>(sample.weight * counted.values[i - 1]);
    }
    std::span<const uintptr_t> stack;
    if (sample.stack != 0) stack = reader_.frames(sample.stack);
    writer_.Add(
        {.stack = stack, .values = std::span(values).first(types), .labels = LabelsOf(row).view()});
  }

  RowLabels LabelsOf(const ProfileRow& row) const {
    const Sample& sample = row.sample;
    RowLabels labels;
    labels.AddNumber("bytes", static_cast<int64_t>(sample.requested), "bytes");
    labels.AddNumber("thread", sample.thread, {});
    if (profile_.kind == ProfileKind::kLifetimes) {
      labels.AddText("lifetime", LifetimeRange(row.end_ns - sample.time_ns));
      labels.AddText("censored", row.censored ? "yes" : "no");
    }
    if (!suspects_) return labels;
    constexpr int64_t kMillisecond = 1'000'000;
    labels.AddNumber("age", (profile_.begin_ns - sample.time_ns) / kMillisecond, "milliseconds");
    if (const Suspect* suspect = suspects_->Find(sample.stack)) {
      labels.AddText("leak", "suspect");
      labels.AddNumber("leak_growth", static_cast<int64_t>(suspect->bytes_per_minute), "bytes");
      labels.AddNumber("leak_confidence", static_cast<int64_t>(100 * suspect->confidence),
                       "percent");
    }
    return labels;
  }

  const CollectedProfile& profile_;
  ProtoWriter& writer_;
  StackTable::Reader reader_;
  WholeBlocks blocks_;
  // In a profile of the live heap:
  Scratch<PageBytes> pages_;  // of each row
  std::optional<SuspectsOf> suspects_;
};

// The rows of a profile as samples of gperftools.
class RowRecords final : public StackRecords {
 public:
  explicit RowRecords(const CollectedProfile& profile) : profile_(profile) {}

  void ForEach(StackRecordVisitor visit, void* argument) const override {
    const StackTable::Reader reader(stack_table);
    TextSamples samples(profile_.period);
    for (const ProfileRow& row : profile_.rows.rows()) {
      StackRecord record = samples.RecordOf(row.sample);
      if (record.count == 0) continue;
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
  const Mappings mappings;
  ProtoWriter writer({.sample_types = kGrowth,
                      .default_sample_type = kGrowth[1].type,
                      .period_type = {"space", "bytes"},
                      .period = 1,
                      .comments = {},
                      .drop_frames = kOwnFrames},
                     mappings, out);
  AddOptionComments(heap.options(), writer);
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
  const Mappings mappings;
  ProtoWriter writer(HeaderOf(profile), mappings, out);
  if (profile.rows.left_out() != 0) {
    Message left_out;
    left_out << profile.rows.left_out() << " samples are left out: see TCMALLOC_MAX_SAMPLES";
    writer.AddComment(left_out.view());
  }
  AddOptionComments(heap.options(), writer);
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
