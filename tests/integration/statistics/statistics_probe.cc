// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Prints what the allocator tells about itself:
//
//   rest   the same moment in all formats, one after the other, each behind a line "== FORMAT"
//   load   JSON and text, over and over, while four threads allocate and free
//   grow   JSON, over and over, while four threads allocate and free nothing

#include <gperftools/malloc_extension_c.h>
#include <malloc.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t kTextBytes = std::size_t{256} << 10;

// Static, so that taking a report allocates nothing.
char text[kTextBytes];
char json[kTextBytes];
char xml[kTextBytes];

constexpr const char* kProperties[] = {
    "tcmalloc.statistics.in_use",
    "tcmalloc.statistics.central_free",
    "tcmalloc.statistics.metadata",
    "tcmalloc.statistics.mapped_bytes",
    "generic.current_allocated_bytes",
    "generic.total_physical_bytes",
    "tcmalloc.central_cache_free_bytes",
    "tcmalloc.transfer_cache_free_bytes",
    "tcmalloc.thread_cache_free_bytes",
    "tcmalloc.pageheap_free_bytes",
    "tcmalloc.pageheap_unmapped_bytes",
    "generic.virtual_memory_used",
    "tcmalloc.pageheap_total_reserve_bytes",
};
std::size_t values[std::size(kProperties)];

void Work(unsigned seed, std::vector<void*>* blocks) {
  for (std::size_t i = 0; i < 20'000; ++i) {
    seed = seed * 1664525 + 1013904223;
    void*& block = (*blocks)[seed % blocks->size()];
    std::free(block);
    const std::size_t size = (seed >> 8) % (seed % 97 == 0 ? 900'000 : 5'000);
    block = std::malloc(size);
    std::memset(block, 1, size < 64 ? size : 64);
  }
}

void PrintAtRest() {
  std::vector<void*> blocks(2000);
  Work(1, &blocks);
  std::vector<void*> others(2000);
  std::thread([&others] { Work(2, &others); }).join();
  FILE* const stream = fmemopen(xml, sizeof(xml), "w");
  if (stream == nullptr) std::abort();
  std::setbuf(stream, nullptr);
  std::fflush(stdout);

  MallocExtension_GetStatsJson(json, sizeof(json));
  MallocExtension_GetStats(text, sizeof(text));
  malloc_info(0, stream);
  const struct mallinfo2 info = mallinfo2();
  for (std::size_t i = 0; i < std::size(kProperties); ++i) {
    if (MallocExtension_GetNumericProperty(kProperties[i], &values[i]) == 0) std::abort();
  }

  std::printf("== json\n%s== text\n%s== xml\n%s== mallinfo2\n", json, text, xml);
  std::printf("arena=%zu\nuordblks=%zu\nfsmblks=%zu\nfordblks=%zu\nkeepcost=%zu\n", info.arena,
              info.uordblks, info.fsmblks, info.fordblks, info.keepcost);
  std::printf("== properties\n");
  for (std::size_t i = 0; i < std::size(kProperties); ++i) {
    std::printf("%s=%zu\n", kProperties[i], values[i]);
  }
  std::fclose(stream);
}

void PrintUnderLoad() {
  constexpr int kThreads = 4;
  constexpr int kReports = 200;
  std::atomic<int> working{0};
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::vector<void*> blocks(1000);
      Work(t, &blocks);
      ++working;
      for (unsigned round = t; !stop; round += kThreads) {
        Work(round, &blocks);
        if (round % 8 == t) MallocExtension_MarkThreadIdle();
      }
      for (void* block : blocks) std::free(block);
    });
  }
  while (working < kThreads) std::this_thread::yield();
  for (int i = 0; i < kReports; ++i) {
    MallocExtension_GetStatsJson(json, sizeof(json));
    MallocExtension_GetStats(text, sizeof(text));
    std::printf("== json\n%s== text\n%s", json, text);
    if (i % 50 == 0) MallocExtension_ReleaseFreeMemory();
    MallocExtension_SetNumericProperty("tcmalloc.max_total_thread_cache_bytes",
                                       std::size_t{1} << (20 + i % 5));
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

// Of a size that is rounded up a lot, so that more is in use than was asked for.
void Grow() {
  constexpr int kBlocks = 100'000;
  constexpr std::size_t kSize = 17;
  void** last = nullptr;
  for (int i = 0; i < kBlocks; ++i) {
    auto** block = static_cast<void**>(std::malloc(kSize));
    *block = last;
    last = block;
  }
}

void PrintWhileGrowing() {
  constexpr unsigned kThreads = 4;
  std::atomic<unsigned> growing{kThreads};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < kThreads; ++t) {
    threads.emplace_back([&growing] {
      Grow();
      --growing;
    });
  }
  // One report more when all have ended.
  for (bool last = false; !last;) {
    last = growing == 0;
    MallocExtension_GetStatsJson(json, sizeof(json));
    std::printf("== json\n%s", json);
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view mode = argc == 2 ? argv[1] : "";
  if (mode == "rest") {
    PrintAtRest();
  } else if (mode == "load") {
    PrintUnderLoad();
  } else if (mode == "grow") {
    PrintWhileGrowing();
  } else {
    return 2;
  }
  return 0;
}
