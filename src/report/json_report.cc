// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "report/fields.h"
#include "report/report.h"
#include "size_class/size_classes.h"

namespace tcmalloc {
namespace {

// Writes members and elements with the commas between them. Strings must need no escapes.
class JsonWriter {
 public:
  explicit JsonWriter(TextSink& sink) : sink_(sink) {}

  void Open(std::string_view bracket, std::string_view name = {}) {
    Begin(name);
    sink_.Write(bracket);
    first_ = true;
  }
  void Close(std::string_view bracket) {
    sink_.Write(bracket);
    first_ = false;
  }
  void Member(std::string_view name, uint64_t value) {
    Begin(name);
    sink_.Write((Message() << value).view());
  }
  void Member(std::string_view name, std::string_view value) {
    Begin(name);
    sink_.Write((Message() << "\"" << value << "\"").view());
  }

 private:
  void Begin(std::string_view name) {
    if (!first_) sink_.Write(",");
    first_ = false;
    if (!name.empty()) sink_.Write((Message() << "\"" << name << "\":").view());
  }

  TextSink& sink_;
  bool first_ = true;
};

void WriteTotals(JsonWriter& json, const ReportSnapshot& snapshot) {
  json.Member("pid", static_cast<uint64_t>(::getpid()));
  for (const Field& field : Fields()) json.Member(field.name, field.value(snapshot.statistics));
  json.Member("front_end", snapshot.front_end);
  json.Member("front_end_reason", snapshot.front_end_reason.view());
  json.Member("page_heap", snapshot.page_heap);
  json.Member("page_heap_reason", snapshot.page_heap_reason);
}

void WriteHugepages(JsonWriter& json, const HugePageStats& stats) {
  json.Open("{", "hugepages");
  json.Member("mode", HugepageModeName(stats.setting.mode));
  for (const HugepageFigure& figure : HugepageFigures()) {
    json.Member(figure.name, figure.value(stats));
  }
  json.Close("}");
}

void WriteSizeClasses(JsonWriter& json, const AllSizeClassStatistics& classes) {
  json.Open("[", "size_classes");
  for (const SizeClassStatistics& of : classes) {
    if (of.spans == 0) continue;
    json.Open("{");
    for (const SizeClassField& field : SizeClassFields()) json.Member(field.name, field.value(of));
    json.Close("}");
  }
  json.Close("]");
}

void WriteRuns(JsonWriter& json, size_t least, size_t most, const FreeRuns& runs) {
  if (runs.count == 0) return;
  json.Open("{");
  json.Member("least_pages", uint64_t{least});
  // Runs longer than all listed lengths have no bound.
  if (most > 0) json.Member("most_pages", uint64_t{most});
  json.Member("count", runs.count);
  json.Member("free_bytes", uint64_t{runs.with_memory.bytes()});
  json.Member("returned_bytes", uint64_t{runs.without.bytes()});
  json.Close("}");
}

void WriteFreeRuns(JsonWriter& json, const FreeRunCounts& counts) {
  json.Open("[", "free_runs");
  for (size_t i = 1; i <= FreeRunCounts::kListed; ++i) WriteRuns(json, i, i, counts.of_length[i]);
  WriteRuns(json, FreeRunCounts::kListed + 1, 0, counts.longer);
  json.Close("]");
}

}  // namespace

void WriteJsonReport(TextSink& sink, Detail detail) {
  ReportSnapshot snapshot(detail);
  JsonWriter json(sink);
  json.Open("{");
  if (TakeSnapshot(&snapshot)) {
    WriteTotals(json, snapshot);
    if (const ReportDetails* details = snapshot.details()) {
      if (snapshot.uses_hugepages) WriteHugepages(json, snapshot.hugepages);
      WriteSizeClasses(json, details->classes);
      WriteFreeRuns(json, details->free_runs);
    }
  }
  json.Close("}\n");
}

}  // namespace tcmalloc
