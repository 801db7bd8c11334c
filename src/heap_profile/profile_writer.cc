// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "heap_profile/profile_writer.h"

#include <cstring>

#include "heap_profile/whole_blocks.h"
#include "options/options.h"
#include "profile_format/profile.h"
#include "profile_format/profile_file.h"
#include "profile_format/proto_writer.h"
#include "profile_format/text_profile.h"

namespace tcmalloc {
namespace {

constexpr ValueType kInUse[] = {
    {"inuse_objects", "count"}, {"inuse_space", "bytes"}, {"inuse_requested", "bytes"}};
constexpr ValueType kAllocated[] = {
    {"alloc_objects", "count"}, {"alloc_space", "bytes"}, {"alloc_requested", "bytes"}};
constexpr ValueType kLifetimes[] = {
    {"objects", "count"}, {"space", "bytes"}, {"lifetime", "nanoseconds"}};

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
      : profile_(profile), writer_(writer), reader_(stack_table) {}

  void WriteAll() {
    for (const ProfileRow& row : profile_.rows.rows()) Write(row);
  }

 private:
  void Write(const ProfileRow& row) {
    const Sample& sample = row.sample;
    const bool lifetimes = profile_.kind == ProfileKind::kLifetimes;
    const int64_t lifetime = row.end_ns - sample.time_ns;
    const double third = static_cast<double>(lifetimes ? lifetime : int64_t(sample.requested));
    const int64_t values[] = {
        blocks_.Round(sample.weight),
        static_cast<int64_t>(sample.weight * static_cast<double>(sample.allocated)),
        static_cast<int64_t>(sample.weight * third)};
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
                 .values = values,
                 .labels = std::span(labels).first(lifetimes ? std::size(labels) : 2)});
  }

  const CollectedProfile& profile_;
  ProtoWriter& writer_;
  StackTable::Reader reader_;
  WholeBlocks blocks_;
};

bool IsProto(const char* path) {
  constexpr std::string_view kSuffix = ".pb.gz";
  const size_t length = std::strlen(path);
  if (heap.options().profile_format == ProfileFormatOption::kProto) return true;
  return length >= kSuffix.size() &&
         std::memcmp(path + length - kSuffix.size(), kSuffix.data(), kSuffix.size()) == 0;
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
  ProtoWriter writer(HeaderOf(profile), out);
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

}  // namespace tcmalloc
