// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "report/fields.h"
#include "report/report.h"
#include "size_class/size_classes.h"

namespace tcmalloc {
namespace {

constexpr char kRule[] = "------------------------------------------------";

// The widths are those of gperftools, because people scrape its lines by column.
constexpr size_t kWideColumn = 12;
constexpr size_t kColumn = 8;
constexpr size_t kNarrowColumn = 6;
constexpr size_t kIndexColumn = 3;
constexpr size_t kPlaceColumn = 5;

size_t DigitCount(uint64_t value) {
  size_t digits = 1;
  for (; value >= 10; value /= 10) ++digits;
  return digits;
}

// Appends a value right-aligned in a column.
void AppendPadded(Message& line, uint64_t value, size_t width) {
  for (size_t digits = DigitCount(value); digits < width; ++digits) line << " ";
  line << value;
}

// Appends mebibytes with `decimals` decimals, 1 or more, in a column of `width` including the
// point. Rounds as printf does: to the nearest value, and to an even digit from halfway.
void AppendMebibytes(Message& line, uint64_t bytes, size_t width, int decimals = 1) {
  constexpr uint64_t kMebibyte = uint64_t{1} << 20;
  uint64_t scale = 1;
  for (int i = 0; i < decimals; ++i) scale *= 10;
  const uint64_t scaled = bytes % kMebibyte * scale;
  const uint64_t rest = scaled % kMebibyte;
  uint64_t digits = bytes / kMebibyte * scale + scaled / kMebibyte;
  if (rest > kMebibyte / 2 || (rest == kMebibyte / 2 && digits % 2 == 1)) ++digits;
  AppendPadded(line, digits / scale, width - 1 - static_cast<size_t>(decimals));
  line << ".";
  for (scale /= 10; scale > 0; scale /= 10) line << digits / scale % 10;
}

void WriteSumLine(TextSink& sink, const Field& field, uint64_t bytes) {
  if (field.sign == '=') sink.WriteLine(Message() << "MALLOC:   ------------");
  Message line;
  line << "MALLOC: " << std::string_view(&field.sign, 1) << " ";
  AppendPadded(line, bytes, kWideColumn);
  line << " (";
  AppendMebibytes(line, bytes, 7);
  sink.WriteLine(line << " MiB) " << field.label);
}

void WriteCountLine(TextSink& sink, const Field& field, uint64_t value) {
  Message line;
  line << "MALLOC:   ";
  AppendPadded(line, value, kWideColumn);
  sink.WriteLine(line << "              " << field.label);
}

void WriteFieldLines(TextSink& sink, const Statistics& statistics) {
  FieldGroup group = FieldGroup::kMemory;
  for (const Field& field : Fields()) {
    if (group == FieldGroup::kMemory && field.group != group) sink.Write("MALLOC:\n");
    group = field.group;
    if (field.label.empty()) continue;
    const auto print = group == FieldGroup::kMemory ? WriteSumLine : WriteCountLine;
    print(sink, field, field.value(statistics));
  }
}

void WriteChoiceLines(TextSink& sink, const ReportSnapshot& snapshot) {
  sink.WriteLine(Message() << "MALLOC: front end: " << snapshot.front_end_reason.view());
  sink.WriteLine(Message() << "MALLOC: page heap: " << snapshot.page_heap << ", "
                           << snapshot.page_heap_reason);
  if (!snapshot.uses_hugepages) return;
  Message line;
  line << "MALLOC: hugepages: " << HugepageModeName(snapshot.hugepages.setting.mode);
  for (const HugepageFigure& figure : HugepageFigures()) {
    line << ", " << figure.name << " " << figure.value(snapshot.hugepages);
  }
  sink.WriteLine(line);
}

// Begins a line of one size class.
void AppendClass(Message& line, size_t index, uint64_t bytes) {
  line << "class ";
  AppendPadded(line, index, kIndexColumn);
  line << " [ ";
  AppendPadded(line, bytes, kColumn);
  line << " bytes ] : ";
}

void WriteClassLines(TextSink& sink, const AllSizeClassStatistics& classes) {
  sink.Write("Total size of freelists for per-thread caches,\n");
  sink.Write("transfer cache, and central cache, by size class\n");
  sink.WriteLine(Message() << kRule);
  uint64_t cumulative = 0;
  for (size_t i = 1; i < kSizeClassCount; ++i) {
    const SizeClassStatistics& of = classes[i];
    if (of.spans == 0) continue;
    const uint64_t bytes = of.free() * of.object_bytes;
    cumulative += bytes;
    Message line;
    AppendClass(line, i, of.object_bytes);
    AppendPadded(line, of.free(), kColumn);
    line << " objs; ";
    AppendMebibytes(line, bytes, 5);
    line << " MiB; ";
    AppendMebibytes(line, cumulative, 5);
    line << " cum MiB; ";
    AppendMebibytes(line, of.tail_bytes(), kColumn, 3);
    sink.WriteLine(line << " overhead MiB");
  }
}

// Returns a width with room for the name of the field and for figures below 10^10.
size_t ColumnOf(const SizeClassField& field) {
  constexpr size_t kLeast = 10;
  constexpr size_t kBetween = 2;
  return std::max(field.name.size(), kLeast) + kBetween;
}

void WriteClassTitle(TextSink& sink) {
  Message line;
  line << "index";
  for (const SizeClassField& field : SizeClassFields()) {
    for (size_t i = field.name.size(); i < ColumnOf(field); ++i) line << " ";
    line << field.name;
  }
  sink.WriteLine(line);
}

// A table with a line for each size class in use.
void WriteClassTable(TextSink& sink, const AllSizeClassStatistics& classes) {
  sink.WriteLine(Message() << kRule);
  sink.Write("Where the blocks of each size class are\n");
  sink.WriteLine(Message() << kRule);
  WriteClassTitle(sink);
  for (size_t i = 1; i < kSizeClassCount; ++i) {
    const SizeClassStatistics& of = classes[i];
    if (of.spans == 0) continue;
    Message line;
    AppendPadded(line, i, kPlaceColumn);
    for (const SizeClassField& field : SizeClassFields()) {
      AppendPadded(line, field.value(of), ColumnOf(field));
    }
    sink.WriteLine(line);
  }
}

// The free memory of the runs in the lines written so far.
struct Cumulative {
  Length with_memory;
  Length without;
};

// Writes a line that begins with the length of the runs.
void WriteRunsLine(TextSink& sink, Message line, const FreeRuns& runs, Cumulative* cumulative) {
  cumulative->with_memory += runs.with_memory;
  cumulative->without += runs.without;
  line << " * ";
  AppendPadded(line, runs.count, kNarrowColumn);
  line << " spans ~ ";
  AppendMebibytes(line, (runs.with_memory + runs.without).bytes(), kNarrowColumn);
  line << " MiB; ";
  AppendMebibytes(line, (cumulative->with_memory + cumulative->without).bytes(), kNarrowColumn);
  line << " MiB cum; unmapped: ";
  AppendMebibytes(line, runs.without.bytes(), kNarrowColumn);
  line << " MiB; ";
  AppendMebibytes(line, cumulative->without.bytes(), kNarrowColumn);
  sink.WriteLine(line << " MiB cum");
}

void WriteRunsTitle(TextSink& sink, const FreeRunCounts& counts) {
  FreeRuns all = counts.longer;
  uint64_t lengths = 0;
  for (const FreeRuns& runs : counts.of_length) {
    if (runs.count > 0) ++lengths;
    all.with_memory += runs.with_memory;
    all.without += runs.without;
  }
  Message title;
  title << "PageHeap: " << lengths << " sizes; ";
  AppendMebibytes(title, all.with_memory.bytes(), kNarrowColumn);
  title << " MiB free; ";
  AppendMebibytes(title, all.without.bytes(), kNarrowColumn);
  sink.WriteLine(title << " MiB unmapped");
}

void WriteFreeRuns(TextSink& sink, const FreeRunCounts& counts) {
  sink.WriteLine(Message() << kRule);
  WriteRunsTitle(sink, counts);
  sink.WriteLine(Message() << kRule);
  Cumulative cumulative;
  for (size_t i = 1; i <= FreeRunCounts::kListed; ++i) {
    if (counts.of_length[i].count == 0) continue;
    Message line;
    AppendPadded(line, i, kNarrowColumn);
    WriteRunsLine(sink, line << " pages", counts.of_length[i], &cumulative);
  }
  Message line;
  WriteRunsLine(sink, line << ">" << uint64_t{FreeRunCounts::kListed} << "   large", counts.longer,
                &cumulative);
}

}  // namespace

void WriteTextReport(TextSink& sink, int level) {
  ReportSnapshot snapshot(level >= 2 ? Detail::kAll : Detail::kTotals);
  if (!TakeSnapshot(&snapshot)) return;
  sink.WriteLine(Message() << kRule);
  WriteFieldLines(sink, snapshot.statistics);
  WriteChoiceLines(sink, snapshot);
  sink.WriteLine(Message() << kRule);
  const ReportDetails* details = snapshot.details();
  if (details == nullptr) return;
  WriteClassLines(sink, details->classes);
  WriteFreeRuns(sink, details->free_runs);
  // The class table comes last, because gperftools has none: a buffer sized for gperftools cuts
  // these lines.
  WriteClassTable(sink, details->classes);
}

}  // namespace tcmalloc
