// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "leak_check/report.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "base/message.h"
#include "heap/heap.h"
#include "heap_profile/caller_stack.h"
#include "leak_check/report_lines.h"
#include "leak_check/report_stream.h"
#include "leak_check/symbol_names.h"
#include "profile_format/mappings.h"
#include "profile_format/option_comments.h"
#include "profile_format/profile.h"
#include "profile_format/profile_file.h"
#include "profile_format/proto_writer.h"
#include "profile_format/readable_name.h"
#include "profile_format/text_profile.h"
#include "system/clock.h"

namespace tcmalloc {
namespace {

// The most characters of a name in a line.
constexpr size_t kLongestName = 256;

// The lines of a report, and the names of functions in them.
struct Printer {
  explicit Printer(const Mappings& mappings) : names(mappings) {}

  ReportLines lines;
  SymbolNames names;
};

// Appends the place in the file as `tcm symbolize` reads it.
void AppendPlace(const SymbolName& name, Message& line) {
  // `tcm symbolize` expects the address after the call.
  line << name.file << "+" << reinterpret_cast<const void*>(name.file_offset + 1);
}

void PrintFrame(uintptr_t frame, Printer& printer) {
  const SymbolName name = printer.names.Find(frame - 1);
  ReadableNameText room;
  Message line;
  line << "\t@ " << reinterpret_cast<const void*>(frame);
  if (!name.function.empty()) {
    line << " " << BeginningOfName(name.function, room, kLongestName) << "+" << name.offset + 1;
    line << " (";
    AppendPlace(name, line);
    line << ")";
  } else if (!name.file.empty()) {
    line << " ";
    AppendPlace(name, line);
    const std::string_view id = printer.names.BuildIdOf(name.file);
    if (!id.empty()) line << " (build id " << id << ")";
  }
  printer.lines.Print(line);
}

// The frames of a stack without those of this library, whose wrapper of main is in the middle.
class ProgramFrames {
 public:
  explicit ProgramFrames(std::span<const uintptr_t> stack) {
    for (const uintptr_t frame : stack) {
      const bool own = IsOwnCode(reinterpret_cast<const void*>(frame));
      if (!own && count_ < kMostFrames) frames_[count_++] = frame;
    }
  }

  std::span<const uintptr_t> view() const { return {frames_, count_}; }

 private:
  uintptr_t frames_[kMostFrames];
  size_t count_ = 0;
};

// Returns true for functions by which a block came out of this library, where it is a part of the
// program and nothing else tells them apart.
bool IsOfAllocator(uintptr_t frame, SymbolNames& names) {
  return names.Find(frame - 1).function.starts_with("_ZN8tcmalloc");
}

void PrintStack(std::span<const uintptr_t> stack, Printer& printer) {
  const ProgramFrames frames(stack);
  bool inside = true;
  for (const uintptr_t frame : frames.view()) {
    inside = inside && IsOfAllocator(frame, printer.names);
    if (!inside) PrintFrame(frame, printer);
  }
}

void PrintBlocksOf(const CheckReport& report, uint32_t stack, ReportLines& lines) {
  for (uint32_t i = 0; i < report.result.listed_count; ++i) {
    const LostBlock& block = report.result.listed[i];
    if (block.stack != stack) continue;
    lines.Print(Message() << "\tblock " << reinterpret_cast<const void*>(block.address) << " of "
                          << block.bytes << " bytes" << (block.indirect ? ", indirectly" : ""));
  }
}

void PrintRow(const CheckReport& report, const LostRow& row, Printer& printer) {
  Message line;
  line << "Leak of " << row.bytes + row.indirect_bytes << " bytes in "
       << row.objects + row.indirect_objects << " objects";
  if (row.objects == 0) {
    line << ", to which only other leaks lead,";
  } else if (row.indirect_objects > 0) {
    line << " (" << row.indirect_bytes << " bytes in " << row.indirect_objects
         << " to which only other leaks lead)";
  }
  printer.lines.Print(line << " allocated from:");
  PrintStack(report.blocks.Frames(row.stack), printer);
  if (report.options.heap_check_identify_leaks) PrintBlocksOf(report, row.stack, printer.lines);
}

// Tells of all frames before the first one is printed.
void WantNames(const CheckReport& report, uint64_t shown, SymbolNames& names) {
  for (uint64_t i = 0; i < shown; ++i) {
    const ProgramFrames frames(report.blocks.Frames(report.result.rows[i].stack));
    for (const uintptr_t frame : frames.view()) names.Want(frame - 1);
  }
}

void PrintHints(const CheckReport& report, ReportLines& lines) {
  const SnapshotResult& result = report.result;
  if (!result.tried_other_rules) return;
  if (result.lost_at_any_alignment == 0) {
    lines.Print(Message() << "No leaks are found with pointers at any address: the program keeps "
                             "pointers at addresses that are no multiples of "
                          << report.options.heap_check_pointer_source_alignment);
  } else {
    lines.Print(Message() << result.lost_at_any_alignment
                          << " blocks are lost with pointers at any address as well");
  }
  if (result.lost_at_any_offset == 0) {
    lines.Print(
        Message() << "No leaks are found with HEAP_CHECK_MAX_POINTER_OFFSET=-1: the program "
                     "keeps pointers far into blocks");
  }
}

void AddSample(const CheckReport& report, const LostRow& row, bool indirect, ProtoWriter& writer) {
  const uint64_t objects = indirect ? row.indirect_objects : row.objects;
  const uint64_t bytes = indirect ? row.indirect_bytes : row.bytes;
  if (objects == 0) return;
  const int64_t values[] = {static_cast<int64_t>(objects), static_cast<int64_t>(bytes)};
  const SampleLabel labels[] = {
      {.key = "lost", .number = 0, .unit = {}, .text = indirect ? "indirectly" : "directly"}};
  const ProgramFrames frames(report.blocks.Frames(row.stack));
  writer.Add({.stack = frames.view(), .values = values, .labels = labels});
}

bool WriteProtoProfile(const CheckReport& report, const Mappings& mappings, ByteSink& out) {
  constexpr ValueType kTypes[] = {{"inuse_objects", "count"}, {"inuse_space", "bytes"}};
  const std::string_view comments[] = {"leaked blocks"};
  ProtoWriter writer({.sample_types = kTypes,
                      .default_sample_type = "inuse_space",
                      .period_type = {"space", "bytes"},
                      .period = 1,
                      .time_ns = WallNanoseconds(),
                      .duration_ns = 0,
                      .comments = comments,
                      .drop_frames = {}},
                     mappings, out);
  AddOptionComments(heap.options(), writer);
  for (uint32_t i = 0; i < report.result.row_count; ++i) {
    for (const bool indirect : {false, true}) {
      AddSample(report, report.result.rows[i], indirect, writer);
    }
  }
  return writer.Finish();
}

void WriteTextProfile(const CheckReport& report, const MapsText& maps, ByteSink& out) {
  WriteTextHead(out, report.result.lost_blocks, report.result.lost_bytes, "heapprofile");
  for (uint32_t i = 0; i < report.result.row_count; ++i) {
    const LostRow& row = report.result.rows[i];
    const ProgramFrames frames(report.blocks.Frames(row.stack));
    WriteTextRecord(out, {.count = row.objects + row.indirect_objects,
                          .bytes = row.bytes + row.indirect_bytes,
                          .frames = frames.view()});
  }
  WriteMappedLibraries(out, maps);
}

}  // namespace

void PrintLeaks(const CheckReport& report, const Mappings& mappings,
                std::string_view profile_path) {
  const SnapshotResult& result = report.result;
  Printer printer(mappings);
  ReportLines& lines = printer.lines;
  lines.Print(Message() << "Leak check " << report.name << " detected leaks of "
                        << result.lost_bytes << " bytes in " << result.lost_blocks << " objects");
  const uint64_t wanted = report.options.heap_check_max_leaks;
  const uint64_t shown =
      wanted == 0 ? result.row_count : std::min<uint64_t>(wanted, result.row_count);
  lines.Print(Message() << "The " << shown << " largest leaks:");
  WantNames(report, shown, printer.names);
  for (uint64_t i = 0; i < shown; ++i) PrintRow(report, result.rows[i], printer);
  PrintHints(report, lines);
  if (profile_path.empty()) return;
  lines.Print(Message() << "Source lines: tcm heap " << profile_path << ".pb.gz");
}

void PrintNoLeaks(const CheckReport& report) {
  const SnapshotResult& result = report.result;
  Message line;
  line << "tcmalloc: leak check " << report.name << ": no leaks. Each of " << result.live_blocks
       << " blocks (" << result.live_bytes << " bytes) can be reached";
  if (result.left_out_blocks > 0) {
    line << "; " << result.left_out_blocks << " blocks (" << result.left_out_bytes
         << " bytes) are suppressed";
  }
  ReportLines().Print(line);
}

void PrintFailure(std::string_view name, SnapshotOutcome outcome) {
  Message line;
  line << "tcmalloc: leak check " << name << " was not made: ";
  switch (outcome) {
    case SnapshotOutcome::kNoMemory:
      line << "the system has no memory for it";
      break;
    case SnapshotOutcome::kNoThreads:
      line << "the threads in /proc/self/task cannot be listed";
      break;
    case SnapshotOutcome::kNoFork:
      line << "the system cannot make another process";
      break;
    default:
      line << "the process that looks at the copy of the memory failed";
      break;
  }
  constexpr int kPatience = 100;  // milliseconds
  line.WriteLine(report_stream.descriptor(), kPatience);
}

bool WriteLeakProfiles(const CheckReport& report, const MapsText& maps, const Mappings& mappings,
                       const ProfileName& path) {
  ProfileFile text(path.text());
  if (!text.ok()) return false;
  WriteTextProfile(report, maps, text);
  if (!text.Complete()) return false;
  ProfileName name = path;
  name << ".pb.gz";
  if (!name.ok()) return false;
  ProfileFile proto(name.text());
  return proto.ok() && WriteProtoProfile(report, mappings, proto) && proto.Complete();
}

}  // namespace tcmalloc
