// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The statistics count the memory that the library maps for its own records: what is resident
// beside the blocks of the program is in `metadata`. The environment picks the mode.
//
//     own_memory BLOCKS BYTES

#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "gperftools/malloc_extension_c.h"
#include "stress/threads/workload.h"

namespace {

constexpr size_t kMiB = size_t{1} << 20;

// The blocks stay reachable, for the leak checker.
void** blocks;

size_t Figure(const char* name) {
  size_t value = 0;
  PROGRAM_CHECK(MallocExtension_GetNumericProperty(name, &value) != 0);
  return value;
}

// Returns the anonymous memory of this process that is resident. Allocates nothing that stays.
size_t AnonymousBytes() {
  static char line[256];
  static char buffer[1 << 14];
  FILE* file = fopen("/proc/self/status", "r");
  PROGRAM_CHECK(file != nullptr);
  setvbuf(file, buffer, _IOFBF, sizeof(buffer));
  size_t kilobytes = 0;
  while (fgets(line, sizeof(line), file) != nullptr) {
    if (sscanf(line, "RssAnon: %zu", &kilobytes) == 1) break;
  }
  fclose(file);
  return kilobytes * 1024;
}

// Compares what the statistics and the kernel have had more since `before`. The slack is for the
// library's own variables, the page of the last hugepage and leaves that begin to be used.
struct Memory {
  size_t physical = Figure("tcmalloc.statistics.physical");
  size_t resident = AnonymousBytes();
};
void CheckGrowth(const Memory& before, const Memory& now) {
  constexpr size_t kSlack = 3 * kMiB;
  const size_t physical = now.physical - before.physical;
  const size_t resident = now.resident - before.resident;
  printf("physical %zu, resident %zu more\n", physical, resident);
  PROGRAM_CHECK(physical + kSlack >= resident);
  PROGRAM_CHECK(physical <= resident + resident / 10 + kSlack);
}

void CheckSums() {
  PROGRAM_CHECK(Figure("tcmalloc.metadata_bytes") == Figure("tcmalloc.statistics.metadata"));
  PROGRAM_CHECK(Figure("tcmalloc.statistics.virtual") ==
                Figure("tcmalloc.statistics.mapped_bytes") +
                    Figure("tcmalloc.statistics.metadata"));
}

}  // namespace

int main(int argc, char** argv) {
  PROGRAM_CHECK(argc == 3);
  const size_t count = strtoul(argv[1], nullptr, 10);
  const size_t bytes = strtoul(argv[2], nullptr, 10);
  blocks = static_cast<void**>(malloc(count * sizeof(void*)));
  PROGRAM_CHECK(blocks != nullptr);
  memset(static_cast<void*>(blocks), 0, count * sizeof(void*));
  const Memory before;
  for (size_t i = 0; i < count; ++i) {
    blocks[i] = malloc(bytes);
    PROGRAM_CHECK(blocks[i] != nullptr);
    memset(blocks[i], 1, malloc_usable_size(blocks[i]));
  }
  const Memory now;
  CheckGrowth(before, now);
  CheckSums();
  // A child has the records as they were.
  const size_t metadata = Figure("tcmalloc.metadata_bytes");
  const pid_t child = fork();
  PROGRAM_CHECK(child >= 0);
  if (child == 0) {
    PROGRAM_CHECK(Figure("tcmalloc.metadata_bytes") >= metadata);
    CheckSums();
    _exit(0);
  }
  int status = 0;
  PROGRAM_CHECK(waitpid(child, &status, 0) == child && status == 0);
}
