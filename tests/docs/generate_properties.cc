// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Writes docs/malloc-extension.md, of which the properties are a table; generated_page.h tells the
// arguments.

#include <sstream>
#include <string>
#include <string_view>

#include "docs/generated_page.h"
#include "extension/properties.h"

namespace tcmalloc {
namespace {

constexpr std::string_view kIntroduction = R"(# MallocExtension

<!-- Generated from src/extension/properties.cc by tests/docs/generate_properties.cc: the test
docs_properties fails when the two differ, and prints the command that writes this page anew. -->

The questions that a program can ask the allocator, and the requests that it can make, while it runs. Names, types and the order of the
virtual functions are those of gperftools 2.10 to 2.18: a program that was compiled with their headers, or
linked with their libraries, runs unchanged when our libraries are found first.

| header | contents |
|---|---|
| `gperftools/malloc_extension.h` | `class MallocExtension`, `class SysAllocator` |
| `gperftools/malloc_extension_c.h` | the same for C, one function for each method |
| `gperftools/tcmalloc.h` | malloc, operator new and their kin as `tc_malloc`, `tc_new` and so on |
| `gperftools/nallocx.h` | `nallocx`: how large a block would be |
| `google/tcmalloc.h`, `google/malloc_extension.h`, `google/malloc_extension_c.h` | the same by older names |

The interface of google/tcmalloc, which has the same properties, is described in [What a program can call](api.md).

```cpp
#include <gperftools/malloc_extension.h>

size_t in_use = 0;
MallocExtension::instance()->GetNumericProperty("generic.current_allocated_bytes", &in_use);
MallocExtension::instance()->ReleaseFreeMemory();
```

The headers say what each function does. These points may differ from what a reader of gperftools expects:

- **Everywhere.** All of it may be called before main, after exit handlers, in any thread and in the child of
  a fork. In a signal handler that interrupted the allocator, what needs a lock does nothing: texts are empty,
  and properties are not found.
- **GetStats** gives text of level 2. `MallocExtension_GetStatsJson`, which gperftools has not, gives the same
  figures as JSON ([statistics](statistics.md)).
- **Ranges.** The callback sees a copy: it may allocate and free.
- **MarkThreadIdle** and **MarkThreadTemporarilyIdle** return what the thread's own cache holds. They change
  nothing for a thread that the caches of CPUs serve, which it shares with others.
- **ReleaseFreeMemory** empties the caches first, as far as that is possible. **ReleaseToSystem** takes free
  pages alone.
- **SetMemoryReleaseRate** changes what `TCMALLOC_RELEASE_RATE` set ([tuning](tuning.md)): the releases that
  follow frees, and the half-life of unused memory. Rates below 0 and above 10 become 0 and 10.
- **GetOwnership** still says that a small block is owned after it was freed.
- **GetFreeListSizes** counts the caches of CPUs as `tcmalloc.thread`.
- **GetHeapSample** and **GetHeapGrowthStacks** have the samples and the growth of the heap with their stacks in libraries
  with profiles. Those of the minimal libraries say that there are no samples, and have one record of all growth together.
- **SetSystemAllocator**: memory that is not from the system goes back to nobody; at most 64 separate runs of it
  can be had.
- **VerifyAllMemory** and its kin are true, and **MallocMemoryStats** counts nothing; in debug mode and the debug
  libraries they look at the blocks, and end the process at the first mistake.
- A program may `Register` an extension of its own; `Register(nullptr)` restores that of the heap.
- Where the C++ library comes into a C program only later, by dlopen, the type information of the class
  (`typeid`, `dynamic_cast`) cannot be used; everything else can.

## Numeric properties

Every figure of the [statistics](statistics.md) can be read as `tcmalloc.statistics.` and its name. The properties
below are those of gperftools and of google/tcmalloc.

Bytes unless the meaning says otherwise. Each is exact while no other thread is in the allocator. A value that
is written and lies outside the property's range becomes the nearest one inside.

| property | access | meaning |
|---|---|---|
)";

std::string Page() {
  std::ostringstream page;
  page << kIntroduction;
  for (const Property& property : Properties()) {
    page << "| `" << property.name << "` | " << (property.set != nullptr ? "read, write" : "read")
         << " | " << MeaningOf(property) << " |\n";
  }
  return page.str();
}

}  // namespace
}  // namespace tcmalloc

int main(int argc, char** argv) {
  return tcmalloc::testing::KeepPage(argc, argv, tcmalloc::Page());
}
