// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Writes docs/statistics.md from the table of figures; generated_page.h tells the arguments.

#include <sstream>
#include <string>
#include <string_view>

#include "docs/generated_page.h"
#include "report/fields.h"
#include "report/report_snapshot.h"

namespace tcmalloc {
namespace {

constexpr std::string_view kIntroduction = R"(# Statistics

<!-- Generated from src/report/fields.cc by tests/docs/generate_statistics.cc: the test
docs_statistics fails when the two differ, and prints the command that writes this page anew. -->

The figures that the allocator reports about itself, and how to read them.

| you have | you get the figures by |
|---|---|
| a program that ends | `MALLOCSTATS=1` or `2` in its environment: text on stderr at exit (nothing from programs that close stderr before, as those of coreutils do: `tcm run` tells of them, too) |
| C or C++ | `MallocExtension::instance()->GetStats`, `MallocExtension_GetStats`: text of level 2 |
| | `MallocExtension_GetStatsJson` (`gperftools/malloc_extension_c.h`): JSON |
| | `MallocExtension::GetNumericProperty`: one figure, `tcmalloc.statistics.` and its name, or a name of gperftools ([all of them](malloc-extension.md)) |
| only libc's functions | `malloc_stats()`: text of level 1 on stderr; `malloc_info(0, stream)`: XML; `mallinfo2()` |
| `tcm run` | a report that sums up JSON of all processes (`TCMALLOC_EXIT_REPORT`) |

All formats print the same table of figures: a name here is a key in JSON, the `name` of an element in XML and,
behind its prefix, a property. The text of gperftools, with its columns, is kept for programs that scrape it.

- **Consistent.** The sums below hold in each report, also while other threads allocate: the parts of a report
  are taken one after the other, and what would be counted twice is taken off what is in use or free.
- **Exact at rest.** While no other thread is in the allocator, every figure is right to the byte, except those
  that are called an estimate or a bound.
- **Cheap.** A report allocates nothing, and its cost does not grow with the number of blocks. It grows with the
  number of threads and, in level 2 on the page heap of hugepages, with that of hugepages. The page heap's lock is
  let go after some thousand records, about a tenth of a millisecond.
- In a signal handler that interrupted the allocator there are no figures: the text is empty.

## The whole heap

```
in_use + page_heap_free + central_free + transfer_free + thread_free + cpu_free + metadata = physical
physical + page_heap_returned + untouched = virtual = mapped_bytes + metadata
in_use = large_in_use + the sum over size classes of in_use * bytes
released_for_program + released_in_background + shed_by_page_heap + released_for_hard_limit
  + released_by_allocator = released_bytes
```

)";

constexpr std::string_view kRecords = R"(
## The allocator's records

`metadata` is the memory that the library has mapped for itself and has used: the records of spans and of caches, the
slabs of CPUs, samples and their stacks, the blocks that `HEAPPROFILE` and `HEAPCHECK` record, the stacks of the CPU
profiler, and the records of the hardened and the debug mode. Room that was mapped ahead does not count. Some of these
are counted in steps, so that a little less may be resident:

- Arrays that grow count up to a sixteenth of their newest part more than they use, but a page at least.
- The table of the size classes of pages counts a byte for each page of the heap at its largest.
- Slabs of CPUs count the pages of all places that a class may use, or might once.
- The hardened mode has a byte for each 16 bytes of the heap. It counts them for each 4 MiB in which a block ever
  began, a sixteenth of the heap; where blocks are large it uses a part of that.
- A table of stacks counts as a whole once it has grown, 4 MiB at most.

These do not count, as they are no part of `physical` and `virtual` at all:

- The variables of the library, as `size` shows them: less than 2 MiB, of which most processes touch a tenth.
- Memory that is there only while a report, a profile or a result of the leak checker is made, and what the latter
  keeps of suppressions, 320 KiB at most.
- The stack on which a crash is reported, 256 KiB that are not touched before.
- Blocks in pages of their own: guarded samples, a page for each of `TCMALLOC_GUARDED_SLOTS`, and what
  `TCMALLOC_PAGE_FENCE` fences. `in_use` does not have them either.
- What no span has taken yet of the last hugepage that the classic heap asked for, less than 2 MiB: it counts as returned, but
  is resident ([hugepages](subsystems/page-heap-classic.md#hugepages)).
- Where the kernel is set to use hugepages always, what they add to parts of arrays of 32 MiB or more.
)";

constexpr std::string_view kSizeClasses = R"(
## Size classes

Blocks of up to 256 KiB are rounded up to the size of a class. Level 2 of the text has two lines for each class
that has spans. The first is gperftools':

```
class   7 [       96 bytes ] :       85 objs;   0.0 MiB;   0.1 cum MiB;    0.001 overhead MiB
```

It tells free blocks wherever they are; their bytes; the bytes of this class and all before; the ends of spans that
have no room for a block. MiB are rounded as printf rounds. The second line is a row of the table that ends the text:

```
index       bytes       spans  span_bytes      in_use  thread_free ...
    7          96           3       24576          12           40 ...
```

Its columns are the figures below, which are attributes of `<size>` in XML and members of `size_classes` in JSON.

```
span_bytes = bytes * (in_use + thread_free + cpu_free + transfer_free + central_free + untouched)
             + the ends of its spans
```

)";

constexpr std::string_view kFreeRuns = R"(
## Free runs of pages

The rest of level 2 tells what the page heap has free, for each length of runs in pages: how many there are, their
MiB, the MiB of this length and all before, and the same of what has no physical memory (`unmapped`). XML has it in
`<free_runs>`, JSON in `free_runs`: `least_pages` and `most_pages`, `count`, `free_bytes`, `returned_bytes`. The last
row is of all longer runs and has no `most_pages`. Much memory in short runs is fragmentation: no large
block fits there.

## Front end and page heap

`front end:` and `page heap:` say which of either runs, and why; `front_end`, `front_end_reason`, `page_heap` and
`page_heap_reason` say it in XML and JSON. Where the page heap is the one of hugepages, there are these
figures besides:

)";

constexpr std::string_view kMallinfo = R"(
## mallinfo2

| member | sum of |
|---|---|
| `arena` | `mapped_bytes` |
| `uordblks` | `in_use` |
| `fsmblks` | `thread_free`, `cpu_free`, `transfer_free`, `central_free` |
| `fordblks` | `page_heap_free`, `page_heap_returned`, `untouched` |
| `keepcost` | `page_heap_free` |

The other members are 0. In `mallinfo`, whose members have 32 bits, large numbers wrap.

## What the figures tell

| what you see | what it means |
|---|---|
| resident memory far above `in_use` | see where it is: `page_heap_free` goes back by itself ([when](limits-and-containers.md)); `thread_free` is bounded by `TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES`; `central_free` is fragmentation |
| `central_free` large, `in_use` small | each span still has some block in use; `external_bytes` tells which sizes |
| `most_internal` large | blocks may be a little larger than their class before; compare sizes with the classes |
| `page_heap_returned` large | address space alone; it costs no memory |
| `metadata` grows and does not shrink | records are kept for reuse; it follows the largest number of spans, of samples and of recorded blocks |

## Large allocations

With `TCMALLOC_LARGE_ALLOC_REPORT_THRESHOLD=1073741824` a block of 1 GiB or more is reported on stderr:

```
tcmalloc: large alloc 1073741824 bytes == 0x7f3a80000000 @
```

The bytes are those of the block, in whole pages. Each report raises the threshold by an eighth, so that a program
with many such blocks does not fill its log. Behind the `@` stand the addresses of the callers where the library
captures stacks; the minimal library does not. A threshold that is negative or 0 turns the reports off. Blocks of up to
256 KiB are never reported.
)";

std::string_view UnitName(Unit unit) {
  switch (unit) {
    case Unit::kBytes:
      return "bytes";
    case Unit::kCount:
      return "count";
    case Unit::kObjects:
      return "blocks";
    default:
      return "nanoseconds";
  }
}

void WriteFields(std::ostream& page) {
  page << "| figure | unit | meaning |\n|---|---|---|\n";
  for (const Field& field : Fields()) {
    page << "| `" << field.name << "` | " << UnitName(field.unit) << " | " << MeaningOf(field);
    if (!field.label.empty()) page << " In the text: \"" << field.label << "\".";
    page << " |\n";
  }
}

void WriteSizeClassFields(std::ostream& page) {
  page << "| figure | unit | meaning |\n|---|---|---|\n";
  for (const SizeClassField& field : SizeClassFields()) {
    page << "| `" << field.name << "` | " << UnitName(field.unit) << " | " << MeaningOf(field)
         << " |\n";
  }
}

void WriteHugepageFigures(std::ostream& page) {
  page << "| figure | meaning |\n|---|---|\n| `mode` | What the kernel does about them. |\n";
  for (const HugepageFigure& figure : HugepageFigures()) {
    page << "| `" << figure.name << "` | " << figure.meaning << " |\n";
  }
}

std::string Page() {
  std::ostringstream page;
  page << kIntroduction;
  WriteFields(page);
  page << kRecords;
  page << kSizeClasses;
  WriteSizeClassFields(page);
  page << kFreeRuns;
  WriteHugepageFigures(page);
  page << kMallinfo;
  return page.str();
}

}  // namespace
}  // namespace tcmalloc

int main(int argc, char** argv) {
  return tcmalloc::testing::KeepPage(argc, argv, tcmalloc::Page());
}
