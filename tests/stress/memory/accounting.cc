// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The statistics at rest: what the application holds is counted to the byte, the parts add up to
// what was mapped, and what may be resident is what the kernel says is resident, within one
// percent.

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "stress/threads/workload.h"

namespace {

using tcmalloc::testing::Random;

constexpr size_t kMiB = size_t{1} << 20;

// The figures of malloc_info, read through a buffer that is always the same.
class Figures {
 public:
  Figures() {
    FILE* stream = fmemopen(text_, sizeof(text_), "w");
    PROGRAM_CHECK(stream != nullptr);
    setbuf(stream, nullptr);
    PROGRAM_CHECK(malloc_info(0, stream) == 0);
    fclose(stream);
  }

  int64_t operator[](const char* name) const {
    char key[64];
    snprintf(key, sizeof(key), "<bytes name=\"%s\" value=\"", name);
    const char* found = strstr(text_, key);
    PROGRAM_CHECK(found != nullptr);
    return strtoll(found + strlen(key), nullptr, 10);
  }

  int64_t Parts() const {
    int64_t sum = 0;
    for (const char* name :
         {"in_use", "page_heap_free", "central_free", "transfer_free", "thread_free", "cpu_free",
          "page_heap_returned", "untouched", "metadata"}) {
      PROGRAM_CHECK((*this)[name] >= 0);
      sum += (*this)[name];
    }
    return sum;
  }

 private:
  static char text_[1 << 16];
};
char Figures::text_[1 << 16];

uintptr_t EndOf(void* block) {
  return reinterpret_cast<uintptr_t>(block) + malloc_usable_size(block);
}

struct Blocks {
  // Room for the list comes from the same heap, and is touched, before anything is measured.
  explicit Blocks(size_t most) : list(most) { list.clear(); }

  void Allocate(Random& random, size_t total) {
    for (size_t held = 0; held < total; held += malloc_usable_size(list.back())) {
      const size_t size = random.Size();
      list.push_back(malloc(size));
      PROGRAM_CHECK(list.back() != nullptr);
      memset(list.back(), 1, malloc_usable_size(list.back()));
    }
  }
  void FreeSome(Random& random, size_t percent) {
    size_t kept = 0;
    for (void* block : list) {
      if (random.Below(100) < percent) {
        free(block);
      } else {
        list[kept++] = block;
      }
    }
    list.resize(kept);
  }
  int64_t bytes() const {
    int64_t sum = 0;
    for (void* block : list) sum += static_cast<int64_t>(malloc_usable_size(block));
    return sum;
  }

  std::vector<void*> list;
};

// Resident bytes of the mappings that hold any of the blocks: what the kernel was told about
// hugepages divides the heap into several.
int64_t ResidentAround(std::vector<void*>& blocks) {
  static char line[512];
  std::sort(blocks.begin(), blocks.end());
  FILE* file = fopen("/proc/self/smaps", "r");
  PROGRAM_CHECK(file != nullptr);
  bool holds_blocks = false;
  int64_t resident = 0;
  while (fgets(line, sizeof(line), file) != nullptr) {
    uintptr_t start = 0;
    uintptr_t end = 0;
    long long kilobytes = 0;
    if (sscanf(line, "%lx-%lx ", &start, &end) == 2) {
      const auto next =
          std::lower_bound(blocks.begin(), blocks.end(), reinterpret_cast<void*>(end));
      holds_blocks = next != blocks.begin() && EndOf(next[-1]) > start;
    }
    if (holds_blocks && sscanf(line, "Rss: %lld kB", &kilobytes) == 1) {
      resident += static_cast<int64_t>(kilobytes) * 1024;
    }
  }
  fclose(file);
  return resident;
}

void CheckSums(const Figures& figures, int64_t in_use) {
  PROGRAM_CHECK(figures["in_use"] == in_use);
  PROGRAM_CHECK(figures.Parts() == figures["virtual"]);
}

}  // namespace

int main() {
  constexpr int kRounds = 5;
  Random random(1);
  Blocks blocks(1 << 20);
  // Streams and threads keep some memory from their first use on.
  static_cast<void>(Figures());
  static_cast<void>(ResidentAround(blocks.list));
  std::thread([] { free(malloc(100)); }).join();
  const int64_t others = Figures()["in_use"];
  for (int round = 0; round < kRounds; ++round) {
    blocks.Allocate(random, 200 * kMiB);
    CheckSums(Figures(), others + blocks.bytes());
    std::thread([&] { blocks.FreeSome(random, 50); }).join();
    CheckSums(Figures(), others + blocks.bytes());
  }
  malloc_trim(0);
  const Figures figures;
  CheckSums(figures, others + blocks.bytes());
  const int64_t expected = figures["physical"] - figures["metadata"];
  const int64_t resident = ResidentAround(blocks.list);
  dprintf(STDERR_FILENO, "resident %lld, expected %lld\n", static_cast<long long>(resident),
          static_cast<long long>(expected));
  // A hugepage brings the rest of each zone that a thread has begun in it.
  PROGRAM_CHECK(resident <= expected + int64_t{kMiB});
  PROGRAM_CHECK(resident >= expected - expected / 100);
  blocks.FreeSome(random, 100);
  CheckSums(Figures(), others);
  return 0;
}
