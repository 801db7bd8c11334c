// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// What the debug libraries answer, and how a process ends that several threads bring down at once.

#include <gperftools/malloc_extension.h>
#include <gperftools/nallocx.h>
#include <malloc.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "conformance/child.h"
#include "conformance/suite.h"

namespace tcmalloc::testing {
namespace {

using FreeListInfo = MallocExtension::FreeListInfo;

MallocExtension& Extension() { return *MallocExtension::instance(); }

template <typename T>
T* Hide(T* pointer) {
  asm volatile("" : "+r"(pointer)::"memory");
  return pointer;
}

char* Malloc(std::size_t n) { return Hide(static_cast<char*>(std::malloc(n))); }

bool AllBytesAre(const char* bytes, std::size_t n, unsigned char value) {
  return std::all_of(bytes, bytes + n,
                     [=](char c) { return static_cast<unsigned char>(c) == value; });
}

std::size_t CountOf(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

// The child must be ended by a message with these words, once.
void ExpectReport(Case& result, const std::string& words, const std::function<void()>& body) {
  const ChildResult child = RunInChild(body);
  result.Check(child.Killed(SIGABRT), "end", "SIGABRT", child);
  result.Equal("messages", std::size_t{1}, CountOf(child.errors, "tcmalloc: "));
  result.Check(child.errors.find(words) != std::string::npos, "message", words, child.errors);
}

struct Totals {
  int blocks = 0;
  std::size_t bytes = 0;
  int histogram[kMallocHistogramSize] = {};

  Totals() { Extension().MallocMemoryStats(&blocks, &bytes, histogram); }
};

void AddFillings(Suite& suite) {
  suite.Add("filling/fresh", [](Case& result) {
    for (const std::size_t n : {1, 100, 5000, 300'000}) {
      char* block = Malloc(n);
      result.True("0xAB", AllBytesAre(block, n, 0xAB));
      std::free(block);
    }
  });
  suite.Add("filling/calloc", [](Case& result) {
    for (const std::size_t n : {1, 100, 5000, 300'000}) {
      char* block = Hide(static_cast<char*>(std::calloc(1, n)));
      result.True("0", AllBytesAre(block, n, 0));
      std::free(block);
    }
  });
  suite.Add("filling/freed", [](Case& result) {
    char* block = Malloc(1000);
    std::free(block);
    result.True("0xCD", AllBytesAre(Hide(block), 1000, 0xCD));
  });
  suite.Add("filling/realloc", [](Case& result) {
    char* block = Malloc(100);
    std::memset(block, 7, 100);
    char* moved = Hide(static_cast<char*>(std::realloc(block, 200)));
    result.True("moved", moved != block);
    result.True("contents", AllBytesAre(moved, 100, 7));
    result.True("the rest", AllBytesAre(moved + 100, 100, 0xAB));
    std::free(moved);
  });
}

void AddSizes(Suite& suite) {
  suite.Add("sizes/usable", [](Case& result) {
    for (const std::size_t n : {0, 1, 7, 100, 4096, 300'000}) {
      char* block = Malloc(n);
      result.Equal("malloc_usable_size", n, malloc_usable_size(block));
      result.Equal("GetAllocatedSize", n, Extension().GetAllocatedSize(block));
      result.Equal("GetEstimatedAllocatedSize", n, Extension().GetEstimatedAllocatedSize(n));
      result.Equal("nallocx", n, nallocx(n, 0));
      std::free(block);
    }
  });
  suite.Add("sizes/aligned", [](Case& result) {
    for (std::size_t alignment = 8; alignment <= (1 << 20); alignment *= 2) {
      char* block = Hide(static_cast<char*>(aligned_alloc(alignment, 10)));
      result.Equal("offset", std::size_t{0}, reinterpret_cast<std::size_t>(block) % alignment);
      result.Equal("size", std::size_t{10}, malloc_usable_size(block));
      std::free(block);
    }
  });
  suite.Add("sizes/deleted with their alignments", [](Case& result) {
    for (std::size_t alignment = 1; alignment <= 4096; alignment *= 2) {
      const std::align_val_t align{alignment};
      for (const std::size_t n : {0, 30, 5000}) {
        const ChildResult child = RunInChild([=] {
          operator delete(Hide(operator new(n, align)), align);
          operator delete[](Hide(operator new[](n, align)), n, align);
        });
        result.Check(child.Exited(0),
                     std::to_string(n) + " bytes aligned to " + std::to_string(alignment),
                     "exit status 0", child);
      }
    }
  });
  suite.Add("sizes/ownership", [](Case& result) {
    char* block = Malloc(100);
    result.Equal("live", MallocExtension::kOwned, Extension().GetOwnership(block));
    result.Equal("inside", MallocExtension::kNotOwned, Extension().GetOwnership(block + 16));
    result.Equal("elsewhere", MallocExtension::kNotOwned, Extension().GetOwnership(&result));
    std::free(block);
    result.Equal("freed", MallocExtension::kNotOwned, Extension().GetOwnership(Hide(block)));
  });
}

void AddStatistics(Suite& suite) {
  suite.Add("statistics/histogram", [](Case& result) {
    const Totals before;
    char* blocks[] = {Malloc(0), Malloc(1), Malloc(100), Malloc(128), Malloc(1 << 20)};
    const Totals held;
    result.Equal("blocks", 5, held.blocks - before.blocks);
    result.Equal("bytes", std::size_t{229 + (1 << 20)}, held.bytes - before.bytes);
    for (const int bits : {0, 1, 7, 8, 21}) {
      result.Equal("of " + std::to_string(bits) + " bits", 1,
                   held.histogram[bits] - before.histogram[bits]);
    }
    for (char* block : blocks) std::free(block);
    result.Equal("blocks", before.blocks, Totals().blocks);
  });
  suite.Add("statistics/free queue", [](Case& result) {
    std::free(Malloc(1 << 20));
    std::vector<FreeListInfo> lists;
    Extension().GetFreeListSizes(&lists);
    const auto queue = std::find_if(lists.begin(), lists.end(), [](const FreeListInfo& list) {
      return std::strcmp(list.type, "debug.free_queue") == 0;
    });
    if (!result.True("listed", queue != lists.end())) return;
    result.True("at least the block", queue->total_bytes_free >= (1 << 20));
    result.Equal("most", SIZE_MAX, queue->max_object_size);
  });
  suite.Add("statistics/allocated bytes", [](Case& result) {
    std::size_t before = 0;
    std::size_t after = 0;
    Extension().GetNumericProperty("generic.current_allocated_bytes", &before);
    std::free(Malloc(4 << 20));
    Extension().GetNumericProperty("generic.current_allocated_bytes", &after);
    result.True("without the queue's", after < before + (1 << 20));
  });
}

void AddVerification(Suite& suite) {
  suite.Add("verify/whole", [](Case& result) {
    char* block = Malloc(10);
    int* one = new int;
    int* several = new int[10];
    result.True("all", Extension().VerifyAllMemory());
    result.True("malloc", Extension().VerifyMallocMemory(block));
    result.True("new", Extension().VerifyNewMemory(one));
    result.True("new[]", Extension().VerifyArrayNewMemory(several));
    std::free(block);
    delete one;
    delete[] several;
  });
  suite.Add("verify/family", [](Case& result) {
    ExpectReport(result, "allocated with malloc being deallocated with delete",
                 [] { Extension().VerifyNewMemory(Malloc(10)); });
    ExpectReport(result, "allocated with new being deallocated with delete []",
                 [] { Extension().VerifyArrayNewMemory(Hide(new int)); });
  });
  suite.Add("verify/overrun", [](Case& result) {
    ExpectReport(result, "a word after object", [] {
      Malloc(10)[10] = 1;
      Extension().VerifyAllMemory();
    });
  });
  // A write beyond a block that reaches into the next one, which is looked at first or has been
  // freed.
  suite.Add("verify/overrun of two", [](Case& result) {
    for (const bool freed : {false, true}) {
      const ChildResult child = RunInChild([freed] {
        constexpr size_t kMostDistance = 256;
        char* blocks[64];
        for (char*& block : blocks) block = Malloc(80);
        std::sort(std::begin(blocks), std::end(blocks));
        size_t i = 0;
        while (blocks[i + 1] - blocks[i] > ptrdiff_t{kMostDistance}) ++i;
        dprintf(STDERR_FILENO, "expect a word after object at %p \n", blocks[i]);
        if (freed) std::free(blocks[i + 1]);
        std::memset(blocks[i], 'x', static_cast<size_t>(blocks[i + 1] - blocks[i]) + 8);
        freed ? static_cast<void>(Extension().VerifyAllMemory()) : std::free(blocks[i + 1]);
      });
      result.True("ends by abort", child.Killed(SIGABRT));
      const size_t begin = child.errors.find("a word after");
      const size_t end = child.errors.find('\n');
      const std::string words =
          begin < end ? child.errors.substr(begin, end - begin) : std::string("nothing");
      result.Equal("lines that name the block that was overrun", size_t{2},
                   CountOf(child.errors, words));
      if (freed) continue;
      result.True("tells of the next one",
                  child.errors.find("The bytes before the next object, at 0x") < std::string::npos);
    }
  });
  suite.Add("verify/written after free", [](Case& result) {
    ExpectReport(result, "Memory was written to after being freed", [] {
      char* block = Malloc(10);
      std::free(block);
      *Hide(block) = 1;
      Extension().VerifyAllMemory();
    });
  });
  suite.Add("verify/stacks", [](Case& result) {
    const ChildResult child = RunInChild([] {
      char* block = Malloc(10);
      std::free(block);
      std::free(Hide(block));
    });
    for (const char* words :
         {"Noticed by free", "Allocated with malloc by thread", "Deleted by thread", "    @ 0x"}) {
      result.Check(child.errors.find(words) != std::string::npos, "message", words, child.errors);
    }
    result.Equal("stacks that were not kept", std::size_t{0}, CountOf(child.errors, "not kept"));
  });
}

void AddThreads(Suite& suite) {
  suite.Add("threads/eight fail together", [](Case& result) {
    ExpectReport(result, "has been already deallocated", [] {
      std::atomic<int> ready{0};
      std::vector<std::thread> threads;
      for (int i = 0; i < 8; ++i) {
        threads.emplace_back([&ready] {
          char* block = Malloc(100);
          std::free(block);
          ready.fetch_add(1);
          while (ready.load() < 8) {
          }
          std::free(Hide(block));
        });
      }
      for (std::thread& thread : threads) thread.join();
    });
  });
  suite.Add("threads/two forks and a failing child", [](Case& result) {
    std::atomic<bool> stop{false};
    std::thread other([&stop] {
      while (!stop.load()) std::free(Malloc(200));
    });
    for (int i = 0; i < 50; ++i) {
      const ChildResult child = RunInChild([] {
        for (int j = 0; j < 100; ++j) std::free(Malloc(100));
        Extension().VerifyAllMemory();
      });
      result.Check(child.Exited(0), "a child", "exit status 0", child);
    }
    ExpectReport(result, "has never been allocated", [] {
      char local[32];
      std::free(Hide(local + 16));
    });
    stop.store(true);
    other.join();
  });
}

// Takes the addresses that the process may have, up to so many bytes, in small blocks, and gives
// the blocks back. Returns false if there was no end.
bool ExhaustAddresses(std::size_t most) {
  std::ifstream statm("/proc/self/statm");
  rlim_t pages = 0;
  statm >> pages;
  const rlim_t limit = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + most;
  const rlimit addresses = {limit, limit};
  if (setrlimit(RLIMIT_AS, &addresses) != 0) return false;
  constexpr std::size_t kSize = 500;
  void* list = nullptr;
  std::size_t taken = 0;
  while (char* block = Malloc(kSize)) {
    std::memcpy(block, &list, sizeof list);
    list = block;
    taken += kSize;
    if (taken > most) return false;
  }
  while (list != nullptr) {
    void* next = nullptr;
    std::memcpy(&next, list, sizeof next);
    std::free(list);
    list = next;
  }
  return true;
}

void AddScarcity(Suite& suite) {
  suite.Add("scarcity/large blocks in memory that was freed", [](Case& result) {
    const ChildResult child = RunInChild([] {
      constexpr std::size_t kAddresses = std::size_t{32} << 20;
      if (!ExhaustAddresses(kAddresses)) _exit(2);
      for (int i = 0; i < 30; ++i) {
        if (Malloc(300'000) == nullptr) _exit(1);
      }
    });
    result.Check(child.Exited(0), "end", "exit status 0", child);
  });
}

void AddTrace(Suite& suite) {
  suite.Add("trace/file", [](Case& result) {
    char path[] = "/tmp/debug_trace_XXXXXX";
    close(mkstemp(path));
    char own[4096] = {};
    if (readlink("/proc/self/exe", own, sizeof own - 1) < 0) return result.Skip("no /proc");
    const ChildResult child = RunInChild([&] {
      setenv("TCMALLOC_TRACE", "1", 1);
      setenv("TCMALLOC_TRACE_FILE", path, 1);
      execl(own, own, "--list", nullptr);
    });
    result.Check(child.Exited(0), "child", "exit status 0", child);
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    result.True("heading", line.starts_with("func\tsize\tptr\tthread_id\tstack"));
    bool malloc_seen = false;
    bool free_seen = false;
    while (std::getline(file, line)) {
      malloc_seen = malloc_seen || line.starts_with("malloc\t");
      free_seen = free_seen || line.starts_with("free\t");
    }
    result.True("allocations", malloc_seen);
    result.True("frees", free_seen);
    unlink(path);
  });
}

}  // namespace
}  // namespace tcmalloc::testing

int main(int argc, char** argv) {
  using namespace tcmalloc::testing;
  Suite suite;
  AddFillings(suite);
  AddSizes(suite);
  AddStatistics(suite);
  AddVerification(suite);
  AddThreads(suite);
  AddScarcity(suite);
  AddTrace(suite);
  return suite.Main(argc, argv, 10);
}
