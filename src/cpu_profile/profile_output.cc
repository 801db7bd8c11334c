// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "cpu_profile/profile_output.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "base/message.h"
#include "cpu_profile/legacy_profile.h"
#include "options/options.h"
#include "profile_format/mappings.h"
#include "profile_format/profile.h"
#include "profile_format/profile_file.h"
#include "profile_format/proto_name.h"
#include "profile_format/proto_writer.h"

namespace tcmalloc {
namespace {

constexpr ValueType kCpuTypes[] = {{"samples", "count"}, {"cpu", "nanoseconds"}};
constexpr ValueType kWallTypes[] = {{"samples", "count"}, {"wall", "nanoseconds"}};

}  // namespace

void NameForProcess(const char* path, char* to) {
  Message number;
  number << "_" << int64_t{getpid()};
  const std::string_view name(path);
  const size_t added =
      name.size() + number.view().size() < kPathCapacity ? number.view().size() : 0;
  const size_t tail = IsProtoName(path) ? kProtoSuffix.size() : 0;
  const size_t head = name.size() - tail;
  std::memcpy(to, path, head);
  std::memcpy(to + head, number.view().data(), added);
  std::memcpy(to + head + added, path + head, tail + 1);
}

bool WriteCpuProto(ByteSink& out, const CpuProfileFacts& facts, const StackCounts& counts) {
  const std::span<const ValueType> types = facts.wall ? kWallTypes : kCpuTypes;
  const int64_t period_ns = 1'000'000'000 / facts.frequency;
  Message lost;
  lost << "samples lost because the table of stacks was full: " << counts.lost();
  const std::string_view comments[] = {lost.view()};
  const Mappings mappings;
  ProtoWriter writer({.sample_types = types,
                      .default_sample_type = types[1].type,
                      .period_type = types[1],
                      .period = period_ns,
                      .time_ns = facts.begin_ns,
                      .duration_ns = facts.duration_ns,
                      .comments = std::span(comments).first(counts.lost() > 0 ? 1 : 0),
                      .drop_frames = {}},
                     mappings, out);
  counts.ForEach([&](std::span<const uintptr_t> stack, uint64_t count) {
    if (stack.empty() || count == 0) return;
    uintptr_t addresses[kMostFrames];
    std::copy(stack.begin(), stack.end(), addresses);
    // The writer takes each address for one behind a call; this one is that of an instruction.
    ++addresses[0];
    const int64_t values[] = {static_cast<int64_t>(count), static_cast<int64_t>(count) * period_ns};
    writer.Add({.stack = std::span(addresses).first(stack.size()), .values = values, .labels = {}});
  });
  return writer.Finish();
}

bool WriteCpuProfileFile(const char* path, bool proto, const CpuProfileFacts& facts,
                         const StackCounts& counts) {
  ProfileFile file(path);
  if (!file.ok()) return false;
  if (proto || IsProtoName(path)) {
    return WriteCpuProto(file, facts, counts) && file.Complete();
  }
  WriteLegacyProfile(file, 1'000'000 / static_cast<uint64_t>(facts.frequency), counts);
  return file.Complete();
}

}  // namespace tcmalloc
