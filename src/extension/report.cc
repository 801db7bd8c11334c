// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "extension/report.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "extension/free_pages.h"
#include "extension/statistics.h"
#include "heap/heap.h"
#include "pages/page_types.h"
#include "size_class/size_classes.h"
#include "system/system_calls.h"
#include "system/transparent_hugepages.h"

namespace tcmalloc {
namespace {

constexpr char kRule[] = "------------------------------------------------";

// One figure in all formats.
struct Field {
  char sign;         // of the text's sum: ' ', '+' or '='
  const char* text;  // label of the text
  const char* name;  // in XML and JSON
  uint64_t (*value)(const Statistics&);
};

constexpr std::array kByteFields = {
    Field{' ', "Bytes in use by application", "in_use",
          [](const Statistics& s) { return s.in_use; }},
    Field{'+', "Bytes in page heap freelist", "page_heap_free",
          [](const Statistics& s) { return s.page_heap_free; }},
    Field{'+', "Bytes in central cache freelist", "central_free",
          [](const Statistics& s) { return s.central_free; }},
    Field{'+', "Bytes in transfer cache freelist", "transfer_free",
          [](const Statistics& s) { return s.transfer_free; }},
    Field{'+', "Bytes in thread cache freelists", "thread_free",
          [](const Statistics& s) { return s.thread_free; }},
    Field{'+', "Bytes in CPU cache freelists", "cpu_free",
          [](const Statistics& s) { return s.cpu_free; }},
    Field{'+', "Bytes in malloc metadata", "metadata",
          [](const Statistics& s) { return s.metadata; }},
    Field{'=', "Actual memory used (physical + swap)", "physical",
          [](const Statistics& s) { return s.physical(); }},
    Field{'+', "Bytes released to OS (aka unmapped)", "page_heap_returned",
          [](const Statistics& s) { return s.page_heap_returned; }},
    Field{'+', "Bytes of spans never touched", "untouched",
          [](const Statistics& s) { return s.untouched; }},
    Field{'=', "Virtual address space used", "virtual",
          [](const Statistics& s) { return s.mapped + s.metadata; }},
};

constexpr std::array kCountFields = {
    Field{' ', "Spans in use", "spans", [](const Statistics& s) { return s.spans; }},
    Field{' ', "Thread heaps in use", "thread_caches",
          [](const Statistics& s) { return s.thread_caches; }},
    Field{' ', "CPU caches in use", "cpu_caches", [](const Statistics& s) { return s.cpu_caches; }},
    Field{' ', "Tcmalloc page size", "page_size",
          [](const Statistics&) { return uint64_t{kPageSize}; }},
};

constexpr std::array kTotalFields = {
    Field{' ', "", "allocated_bytes", [](const Statistics& s) { return s.allocated; }},
    Field{' ', "", "allocations", [](const Statistics& s) { return s.allocations; }},
    Field{' ', "", "live_bytes", [](const Statistics& s) { return s.in_use; }},
    Field{' ', "", "mapped_bytes", [](const Statistics& s) { return s.mapped; }},
    Field{' ', "", "peak_mapped_bytes", [](const Statistics& s) { return s.peak_mapped; }},
};

// In bytes unless the label says otherwise.
constexpr std::array kLimitFields = {
    Field{' ', "Hard limit of the heap (0: none)", "hard_limit",
          [](const Statistics& s) { return s.hard_limit; }},
    Field{' ', "Soft limit of the heap (0: none)", "soft_limit",
          [](const Statistics& s) { return s.soft_limit; }},
    Field{' ', "Requests that met the hard limit (count)", "hard_limit_hits",
          [](const Statistics& s) { return s.hard_limit_hits; }},
    Field{' ', "Sheds for the soft limit (count)", "soft_limit_hits",
          [](const Statistics& s) { return s.soft_limit_hits; }},
    Field{' ', "Sheds under memory pressure (count)", "pressure_hits",
          [](const Statistics& s) { return s.pressure_hits; }},
    Field{' ', "Shed by thread and CPU caches", "shed_by_caches",
          [](const Statistics& s) { return s.shed_by_caches; }},
    Field{' ', "Shed by transfer caches", "shed_by_transfer",
          [](const Statistics& s) { return s.shed_by_transfer; }},
    Field{' ', "Shed by page heap", "shed_by_page_heap",
          [](const Statistics& s) { return s.shed_by_page_heap; }},
    Field{' ', "Longest pause for release by time (ns)", "longest_pause_ns",
          [](const Statistics& s) { return s.longest_pause_ns; }},
};

// Gathers a text that must be written in one piece, since others append to the same file.
class WholeText final : public TextSink {
 public:
  void Write(std::string_view text) override {
    const size_t count = std::min(text.size(), sizeof(buffer_) - size_);
    std::memcpy(buffer_ + size_, text.data(), count);
    size_ += count;
  }
  std::string_view view() const { return {buffer_, size_}; }

 private:
  char buffer_[2048];
  size_t size_ = 0;
};

void WriteJsonField(TextSink& sink, const Field& field, const Statistics& statistics) {
  Message text;
  text << ",\"" << field.name << "\":" << field.value(statistics);
  sink.Write(text.view());
}

size_t DigitCount(uint64_t value) {
  size_t digits = 1;
  for (; value >= 10; value /= 10) ++digits;
  return digits;
}

// Right-aligned in a column.
void AppendPadded(Message& line, uint64_t value, size_t width) {
  for (size_t digits = DigitCount(value); digits < width; ++digits) line << " ";
  line << value;
}

void AppendMebibytes(Message& line, uint64_t bytes) {
  const uint64_t tenths = bytes * 10 / (uint64_t{1} << 20);
  AppendPadded(line, tenths / 10, 6);
  line << "." << tenths % 10;
}

void WriteByteLine(TextSink& sink, const Field& field, const Statistics& statistics) {
  if (field.sign == '=') sink.WriteLine(Message() << "MALLOC:   ------------");
  const uint64_t bytes = field.value(statistics);
  Message line;
  line << "MALLOC: " << std::string_view(&field.sign, 1) << " ";
  AppendPadded(line, bytes, 12);
  line << " (";
  AppendMebibytes(line, bytes);
  sink.WriteLine(line << " MiB) " << field.text);
}

void WriteCountLine(TextSink& sink, const Field& field, const Statistics& statistics) {
  Message line;
  line << "MALLOC:   ";
  AppendPadded(line, field.value(statistics), 12);
  sink.WriteLine(line << "              " << field.text);
}

// Which front end is wanted, and why not the other one if it was tried in vain.
Message FrontEndWords() {
  Message words;
  heap.front_end().Describe(heap.rseq_support(), words);
  return words;
}

const char* FrontEndName() {
  return heap.front_end().wanted() == FrontEnd::kPerCpu ? "per_cpu" : "per_thread";
}

void WriteFrontEndLine(TextSink& sink) {
  sink.WriteLine(Message() << "MALLOC: front end: " << FrontEndWords().view());
}

// The words need no escapes in XML and JSON: they have neither quotes nor angle brackets.
void WriteXmlFrontEnd(TextSink& sink) {
  sink.WriteLine(Message() << "  <front_end name=\"" << FrontEndName() << "\" reason=\""
                           << FrontEndWords().view() << "\"/>");
}

bool UsesHugepages() { return heap.page_heap().kind() == PageHeapKind::kHuge; }

const char* PageHeapName() { return UsesHugepages() ? "huge" : "classic"; }

const char* PageHeapReason() {
  return heap.options().page_heap == PageHeapOption::kAuto ? "the default"
                                                           : "chosen by TCMALLOC_PAGE_HEAP";
}

// What the huge page heap made of hugepages.
struct HugepageFigure {
  const char* name;  // in text and XML
  uint64_t (*value)(const HugePageStats&);
};

constexpr std::array kHugepageFigures = {
    HugepageFigure{"shared", [](const HugePageStats& s) { return uint64_t{s.shared}; }},
    HugepageFigure{"gained_bytes",
                   [](const HugePageStats& s) { return uint64_t{s.backed_used.bytes()}; }},
    HugepageFigure{"wasted_bytes",
                   [](const HugePageStats& s) { return uint64_t{s.backed_unused.bytes()}; }},
    HugepageFigure{"collapsed", [](const HugePageStats& s) { return s.collapses; }},
    HugepageFigure{"broken", [](const HugePageStats& s) { return s.broken; }},
    HugepageFigure{"refusals",
                   [](const HugePageStats& s) { return s.advice_failures + s.collapse_failures; }},
};

void WritePageHeapLines(TextSink& sink) {
  sink.WriteLine(Message() << "MALLOC: page heap: " << PageHeapName() << ", " << PageHeapReason());
  if (!UsesHugepages()) return;
  const HugePageStats stats = heap.page_heap().huge_stats();
  Message line;
  line << "MALLOC: hugepages: " << HugepageModeName(stats.setting.mode);
  for (const HugepageFigure& figure : kHugepageFigures) {
    line << ", " << figure.name << " " << figure.value(stats);
  }
  sink.WriteLine(line);
}

void WriteXmlPageHeap(TextSink& sink) {
  sink.WriteLine(Message() << "  <page_heap name=\"" << PageHeapName() << "\" reason=\""
                           << PageHeapReason() << "\"/>");
  if (!UsesHugepages()) return;
  const HugePageStats stats = heap.page_heap().huge_stats();
  Message line;
  line << "  <hugepages mode=\"" << HugepageModeName(stats.setting.mode) << "\"";
  for (const HugepageFigure& figure : kHugepageFigures) {
    line << " " << figure.name << "=\"" << figure.value(stats) << "\"";
  }
  sink.WriteLine(line << "/>");
}

template <typename F>
void ForEachUsedSizeClass(F f) {
  for (size_t i = 1; i < kSizeClassCount; ++i) {
    const auto c = static_cast<uint8_t>(i);
    const SizeClassStatistics statistics = CurrentSizeClassStatistics(c);
    if (statistics.spans > 0) f(c, statistics);
  }
}

void WriteClassLines(TextSink& sink) {
  sink.WriteLine(Message() << "Total size of freelists for per-thread caches,");
  sink.WriteLine(Message() << "transfer cache, and central cache, by size class");
  sink.WriteLine(Message() << kRule);
  uint64_t cumulative = 0;
  ForEachUsedSizeClass([&](uint8_t c, const SizeClassStatistics& statistics) {
    const uint64_t objects = statistics.central_free + statistics.transfer_free +
                             statistics.thread_free + statistics.cpu_free;
    const SizeClassInfo& info = kSizeClasses[c];
    const uint64_t overhead =
        statistics.spans * (info.span_bytes() - uint64_t{info.objects} * info.size);
    cumulative += objects * info.size;
    Message line;
    line << "class ";
    AppendPadded(line, c, 3);
    line << " [ ";
    AppendPadded(line, info.size, 8);
    line << " bytes ] : ";
    AppendPadded(line, objects, 8);
    line << " objs; ";
    AppendMebibytes(line, objects * info.size);
    line << " MiB; ";
    AppendMebibytes(line, cumulative);
    line << " cum MiB; ";
    AppendMebibytes(line, overhead);
    sink.WriteLine(line << " overhead MiB");
  });
}

// What is free in runs that the lines so far have told about.
struct Cumulative {
  Length with_memory;
  Length without;
};

// Begins with what says how long the runs are.
void WriteRunsLine(TextSink& sink, Message line, const FreeRuns& runs, Cumulative* cumulative) {
  cumulative->with_memory += runs.with_memory;
  cumulative->without += runs.without;
  line << " * ";
  AppendPadded(line, runs.count, 6);
  line << " spans ~ ";
  AppendMebibytes(line, (runs.with_memory + runs.without).bytes());
  line << " MiB; ";
  AppendMebibytes(line, (cumulative->with_memory + cumulative->without).bytes());
  line << " MiB cum; unmapped: ";
  AppendMebibytes(line, runs.without.bytes());
  line << " MiB; ";
  AppendMebibytes(line, cumulative->without.bytes());
  sink.WriteLine(line << " MiB cum");
}

void WriteRunsTitle(TextSink& sink, const FreePages& pages) {
  FreeRuns all = pages.longer;
  uint64_t lengths = 0;
  for (const FreeRuns& runs : pages.of_length) {
    if (runs.count > 0) ++lengths;
    all.with_memory += runs.with_memory;
    all.without += runs.without;
  }
  Message title;
  title << "PageHeap: " << lengths << " sizes; ";
  AppendMebibytes(title, all.with_memory.bytes());
  title << " MiB free; ";
  AppendMebibytes(title, all.without.bytes());
  sink.WriteLine(title << " MiB unmapped");
}

void WriteFreePages(TextSink& sink) {
  FreePages pages;
  CountFreePages(&pages);
  sink.WriteLine(Message() << kRule);
  WriteRunsTitle(sink, pages);
  sink.WriteLine(Message() << kRule);
  Cumulative cumulative;
  for (size_t i = 1; i <= FreePages::kListed; ++i) {
    const FreeRuns& runs = pages.of_length[i];
    if (runs.count == 0) continue;
    Message line;
    AppendPadded(line, i, 6);
    WriteRunsLine(sink, line << " pages", runs, &cumulative);
  }
  Message line;
  WriteRunsLine(sink, line << ">" << uint64_t{FreePages::kListed} << "   large", pages.longer,
                &cumulative);
}

void WriteXmlField(TextSink& sink, const char* type, const Field& field,
                   const Statistics& statistics) {
  sink.WriteLine(Message() << "  <" << type << " name=\"" << field.name << "\" value=\""
                           << field.value(statistics) << "\"/>");
}

void PrintAtExit(int level) {
  FileSink sink(STDERR_FILENO);
  WriteTextReport(sink, level);
}

void AppendJsonLine(const char* path) {
  const int fd =
      system_calls.open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, 0);
  if (fd < 0) return;
  FileSink sink(fd);
  WriteJsonLine(sink);
  system_calls.close(fd);
}

}  // namespace

void WriteTextReport(TextSink& sink, int level) {
  const Statistics statistics = CurrentStatistics();
  sink.WriteLine(Message() << kRule);
  for (const Field& field : kByteFields) WriteByteLine(sink, field, statistics);
  sink.WriteLine(Message() << "MALLOC:");
  for (const Field& field : kCountFields) WriteCountLine(sink, field, statistics);
  for (const Field& field : kLimitFields) WriteCountLine(sink, field, statistics);
  WriteFrontEndLine(sink);
  WritePageHeapLines(sink);
  sink.WriteLine(Message() << kRule);
  if (level < 2) return;
  WriteClassLines(sink);
  WriteFreePages(sink);
}

void WriteXmlReport(TextSink& sink) {
  const Statistics statistics = CurrentStatistics();
  sink.WriteLine(Message() << "<malloc version=\"1\">");
  for (const Field& field : kByteFields) WriteXmlField(sink, "bytes", field, statistics);
  for (const Field& field : kCountFields) WriteXmlField(sink, "count", field, statistics);
  for (const Field& field : kLimitFields) WriteXmlField(sink, "limit", field, statistics);
  WriteXmlFrontEnd(sink);
  WriteXmlPageHeap(sink);
  sink.WriteLine(Message() << "  <sizes>");
  ForEachUsedSizeClass([&](uint8_t, const SizeClassStatistics& of) {
    sink.WriteLine(Message() << "    <size bytes=\"" << of.object_bytes << "\" spans=\"" << of.spans
                             << "\" in_use=\"" << of.in_use << "\" central_free=\""
                             << of.central_free << "\" transfer_free=\"" << of.transfer_free
                             << "\" thread_free=\"" << of.thread_free << "\" cpu_free=\""
                             << of.cpu_free << "\"/>");
  });
  sink.WriteLine(Message() << "  </sizes>");
  sink.WriteLine(Message() << "</malloc>");
}

void WriteJsonLine(TextSink& sink) {
  const Statistics statistics = CurrentStatistics();
  WholeText line;
  line.Write((Message() << "{\"pid\":" << int64_t{::getpid()}).view());
  for (const Field& field : kTotalFields) WriteJsonField(line, field, statistics);
  for (const Field& field : kLimitFields) WriteJsonField(line, field, statistics);
  line.WriteLine(Message() << ",\"front_end\":\"" << FrontEndName() << "\",\"front_end_reason\":\""
                           << FrontEndWords().view() << "\",\"page_heap\":\"" << PageHeapName()
                           << "\",\"page_heap_reason\":\"" << PageHeapReason() << "\"}");
  sink.Write(line.view());
}

void WriteExitReports() {
  const Options& options = heap.options();
  if (options.malloc_stats > 0) PrintAtExit(static_cast<int>(options.malloc_stats));
  if (!options.exit_report.empty()) AppendJsonLine(options.exit_report.text);
}

}  // namespace tcmalloc
