// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include <cstddef>
#include <string_view>

#include "report/fields.h"
#include "report/report.h"
#include "size_class/size_classes.h"

namespace tcmalloc {
namespace {

std::string_view ElementOf(FieldGroup group) {
  switch (group) {
    case FieldGroup::kMemory:
      return "bytes";
    case FieldGroup::kCounts:
      return "count";
    case FieldGroup::kTotals:
      return "total";
    default:
      return "limit";
  }
}

template <typename Value>
void AppendAttribute(Message& element, std::string_view name, Value value) {
  element << " " << name << "=\"" << value << "\"";
}

void WriteFields(TextSink& sink, const Statistics& statistics) {
  for (const Field& field : Fields()) {
    Message element;
    element << "  <" << ElementOf(field.group);
    AppendAttribute(element, "name", field.name);
    AppendAttribute(element, "value", field.value(statistics));
    sink.WriteLine(element << "/>");
  }
}

void WriteChoice(TextSink& sink, std::string_view what, std::string_view name,
                 std::string_view reason) {
  Message element;
  element << "  <" << what;
  AppendAttribute(element, "name", name);
  AppendAttribute(element, "reason", reason);
  sink.WriteLine(element << "/>");
}

void WriteHugepages(TextSink& sink, const HugePageStats& stats) {
  Message element;
  element << "  <hugepages";
  AppendAttribute(element, "mode", HugepageModeName(stats.setting.mode));
  for (const HugepageFigure& figure : HugepageFigures()) {
    AppendAttribute(element, figure.name, figure.value(stats));
  }
  sink.WriteLine(element << "/>");
}

void WriteSizes(TextSink& sink, const AllSizeClassStatistics& classes) {
  sink.Write("  <sizes>\n");
  for (const SizeClassStatistics& of : classes) {
    if (of.spans == 0) continue;
    Message element;
    element << "    <size";
    for (const SizeClassField& field : SizeClassFields()) {
      AppendAttribute(element, field.name, field.value(of));
    }
    sink.WriteLine(element << "/>");
  }
  sink.Write("  </sizes>\n");
}

void WriteRuns(TextSink& sink, size_t least, size_t most, const FreeRuns& runs) {
  if (runs.count == 0) return;
  Message element;
  element << "    <run";
  AppendAttribute(element, "least_pages", uint64_t{least});
  // Runs longer than all listed lengths have no bound.
  if (most > 0) AppendAttribute(element, "most_pages", uint64_t{most});
  AppendAttribute(element, "count", runs.count);
  AppendAttribute(element, "free_bytes", uint64_t{runs.with_memory.bytes()});
  AppendAttribute(element, "returned_bytes", uint64_t{runs.without.bytes()});
  sink.WriteLine(element << "/>");
}

void WriteXmlFreeRuns(TextSink& sink, const FreeRunCounts& counts) {
  sink.Write("  <free_runs>\n");
  for (size_t i = 1; i <= FreeRunCounts::kListed; ++i) WriteRuns(sink, i, i, counts.of_length[i]);
  WriteRuns(sink, FreeRunCounts::kListed + 1, 0, counts.longer);
  sink.Write("  </free_runs>\n");
}

}  // namespace

void WriteXmlReport(TextSink& sink) {
  ReportSnapshot snapshot(Detail::kAll);
  sink.Write("<malloc version=\"1\">\n");
  if (TakeSnapshot(&snapshot)) {
    WriteFields(sink, snapshot.statistics);
    WriteChoice(sink, "front_end", snapshot.front_end, snapshot.front_end_reason.view());
    WriteChoice(sink, "page_heap", snapshot.page_heap, snapshot.page_heap_reason);
    if (snapshot.uses_hugepages) WriteHugepages(sink, snapshot.hugepages);
    if (const ReportDetails* details = snapshot.details()) {
      WriteSizes(sink, details->classes);
      WriteXmlFreeRuns(sink, details->free_runs);
    }
  }
  sink.Write("</malloc>\n");
}

}  // namespace tcmalloc
