// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include <fcntl.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <initializer_list>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "conformance/child.h"
#include "conformance/deaths.h"
#include "conformance/malloc_api.h"
#include "conformance/witness.h"

namespace tcmalloc::testing {
namespace {

using Size = std::size_t;

struct Deallocator {
  const char* name;
  void (*call)(void*);
};

constexpr Deallocator kDeallocators[] = {
    {"free", [](void* p) { Api().free(p); }},
    {"delete", [](void* p) { Api().delete_plain(p); }},
    {"delete[]", [](void* p) { Api().delete_array(p); }},
    {"delete aligned", [](void* p) { Api().delete_aligned(p, std::align_val_t{64}); }},
    {"delete sized", [](void* p) { Api().delete_sized(p, 32); }},
    {"delete sized large", [](void* p) { Api().delete_sized(p, 1 << 20); }},
    {"realloc",
     [](void* p) {
       if (Api().realloc(p, 100) == nullptr) _exit(5);
     }},
    {"realloc to 0",
     [](void* p) {
       if (Api().realloc(p, 0) != nullptr) _exit(5);
     }},
};

alignas(64) char static_bytes[256];
alignas(64) const char constant_bytes[256] = "constant";

void* MapForeign() {
  return mmap(nullptr, Size{1} << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

void* At(std::uintptr_t address) { return reinterpret_cast<void*>(address); }

struct Place {
  const char* name;
  void* (*find)(char* stack_bytes);
};

constexpr Place kPlaces[] = {
    {"stack", [](char* stack_bytes) -> void* { return stack_bytes; }},
    {"static", [](char*) -> void* { return static_bytes; }},
    {"constant", [](char*) -> void* { return const_cast<char*>(constant_bytes); }},
    {"foreign mmap", [](char*) { return MapForeign(); }},
    {"inside a foreign mmap",
     [](char*) -> void* { return static_cast<char*>(MapForeign()) + 4096; }},
    {"address 16", [](char*) { return At(16); }},
    {"first page", [](char*) { return At(4096); }},
    {"unmapped low", [](char*) { return At(0x10000000); }},
    {"unmapped high", [](char*) { return At(0x7000'0000'0000); }},
    {"last of the user half", [](char*) { return At(0x7fff'ffff'f000); }},
    {"first above the user half", [](char*) { return At(0x8000'0000'0000); }},
    {"not canonical", [](char*) { return At(0x1234'5678'9abc'def0); }},
    {"top bit only", [](char*) { return At(0x8000'0000'0000'0000); }},
    {"kernel half", [](char*) { return At(0xffff'8880'0000'1000); }},
    {"last page", [](char*) { return At(0xffff'ffff'ffff'f000); }},
    {"last aligned address", [](char*) { return At(0xffff'ffff'ffff'fff0); }},
};

void AddForeign(Suite& suite) {
  for (const Place& place : kPlaces) {
    for (const Deallocator& deallocator : kDeallocators) {
      suite.Add(std::string("invalid/") + deallocator.name + "/" + place.name,
                [place, deallocator](Case& result) {
                  ExpectAbort(result, Fault::kInvalid, [&] {
                    alignas(64) char stack_bytes[256];
                    void* const address = place.find(stack_bytes);
                    Announce(address);
                    // A heap that is in use, not one that was never touched.
                    Api().free(Api().malloc(100));
                    deallocator.call(address);
                  });
                });
    }
  }
}

// One object of every kind that the loader and the kernel map.
void AddMappings(Suite& suite) {
  suite.Add("invalid/free/every named mapping of the process", [](Case& result) {
    std::ifstream maps("/proc/self/maps");
    std::string line;
    while (std::getline(maps, line)) {
      const auto name = line.find_first_of("/[");
      if (name == std::string::npos || line.compare(name, 6, "[anon:") == 0 ||
          line.compare(name, 6, "[heap]") == 0) {
        continue;
      }
      const std::uintptr_t start = std::stoull(line, nullptr, 16);
      ExpectAbort(result, Fault::kInvalid, [start] {
        Announce(At(start + 64));
        Api().free(At(start + 64));
      });
    }
  });
}

sigjmp_buf after_abort;

void LeaveAbort(int) { siglongjmp(after_abort, 1); }

// Frees each address; the abort must come every time, and nothing else.
void FreeAll(const std::vector<std::uintptr_t>& addresses) {
  std::signal(SIGABRT, LeaveAbort);
  for (const std::uintptr_t address : addresses) {
    if (sigsetjmp(after_abort, 1) == 0) {
      Api().free(At(address));
      std::fprintf(stderr, "survived free of %#jx\n", static_cast<std::uintmax_t>(address));
      _exit(6);
    }
  }
}

void AddWild(Suite& suite) {
  constexpr Size kBatches = 200;
  constexpr Size kBatch = 500;
  struct Range {
    const char* name;
    std::uintptr_t mask;
  };
  // Addresses of the user half are almost never mapped: the heap is a speck in 128 TiB.
  static constexpr Range kRanges[] = {
      {"64-bit values", ~std::uintptr_t{0}},
      {"48-bit values", (std::uintptr_t{1} << 48) - 1},
      {"32-bit values", (std::uintptr_t{1} << 32) - 1},
      {"aligned 64-bit values", ~std::uintptr_t{15}},
      {"page-aligned 47-bit values", ((std::uintptr_t{1} << 47) - 1) & ~std::uintptr_t{4095}},
  };
  for (const Range& range : kRanges) {
    suite.Add(std::string("invalid/free/20,000 random ") + range.name, [range](Case& result) {
      std::mt19937_64 random(20260101);
      std::vector<std::uintptr_t> addresses(kBatch);
      for (Size batch = 0; batch < kBatches / std::size(kRanges); ++batch) {
        for (std::uintptr_t& address : addresses) address = (random() & range.mask) | 32;
        const ChildResult child = RunInChild([&] { FreeAll(addresses); });
        if (child.Exited(0)) continue;
        ChildResult tail = child;
        tail.errors =
            tail.errors.substr(tail.errors.size() - std::min<Size>(tail.errors.size(), 300));
        result.Check(false, "end", "exit 0", tail);
        return;
      }
    });
  }
}

constexpr Size kBlockSizes[] = {8, 32, 100, 1000, 8192, 40000, 200000, 300000, 4 << 20};

void AddMisaligned(Suite& suite) {
  for (const Size size : kBlockSizes) {
    for (const Size offset : std::initializer_list<Size>{1, 2, 4, 7}) {
      suite.Add("misaligned/" + std::to_string(size) + " bytes +" + std::to_string(offset),
                [size, offset](Case& result) {
                  ExpectAbort(result, Fault::kMisaligned, [&] {
                    char* const block = static_cast<char*>(Api().malloc(size));
                    Announce(block + offset);
                    Api().free(block + offset);
                  });
                });
    }
  }
}

// The free lists never saw an interior pointer of a block that has its own pages.
void AddInterior(Suite& suite) {
  for (const Size size : std::initializer_list<Size>{300000, 1 << 20, 4 << 20}) {
    for (const Size offset : std::initializer_list<Size>{16, 4096, 8192, 16384, 131072}) {
      suite.Add("interior/" + std::to_string(size) + " bytes +" + std::to_string(offset),
                [size, offset](Case& result) {
                  ExpectAbort(result, Fault::kInterior, [&] {
                    char* const block = static_cast<char*>(Api().malloc(size));
                    Announce(block + offset);
                    Api().free(block + offset);
                  });
                });
    }
  }
  // Of small blocks only the slow path looks, which every thread's first free of a size takes, and
  // later one free in a batch.
  for (const Size size : std::initializer_list<Size>{48, 100, 256, 1000, 5000, 20000, 100000}) {
    for (const Size offset : std::initializer_list<Size>{8, 16, 4096}) {
      if (offset >= size) continue;
      suite.Add("interior/" + std::to_string(size) + " bytes +" + std::to_string(offset),
                [size, offset](Case& result) {
                  ExpectAbort(result, Fault::kInterior, [&] {
                    char* const block = static_cast<char*>(Api().malloc(size));
                    Announce(block + offset);
                    std::thread([block, offset] { Api().free(block + offset); }).join();
                  });
                });
    }
  }
}

// Makes the caches take frees of this size by their fast path.
void WarmUp(Size size) {
  void* blocks[64];
  for (void*& block : blocks) block = Api().malloc(size);
  for (void* block : blocks) Api().free(block);
}

constexpr Size kFreedSizes[] = {16, 32, 48, 80, 100, 256, 1000, 5000};

// An address that the fast path took in is noticed when it goes back to its span.
void AddInteriorInCaches(Suite& suite) {
  for (const Size size : kFreedSizes) {
    for (const Size offset : std::initializer_list<Size>{8, 16, 24}) {
      if (offset >= size) continue;
      suite.Add("interior in a cache/" + std::to_string(size) + " bytes +" + std::to_string(offset),
                [size, offset](Case& result) {
                  ExpectAbort(result, Fault::kInterior, [&] {
                    WarmUp(size);
                    char* const block = static_cast<char*>(Api().malloc(size));
                    Announce(block + offset);
                    Api().free(block + offset);
                    malloc_trim(0);
                  });
                });
    }
  }
}

// `delete` of what `new[]` gave with a count of elements before the first one: no block of 16 bytes
// or more begins there, which shows in the address.
void AddCookies(Suite& suite) {
  for (const Size size : kFreedSizes) {
    suite.Add("cookie/every block of " + std::to_string(size) + " bytes", [size](Case& result) {
      ExpectAbort(result, Fault::kInterior, [size] {
        std::vector<char*> blocks(2000);
        WarmUp(size);
        for (char*& block : blocks) block = static_cast<char*>(Api().malloc(size));
        for (char* block : blocks) Api().delete_plain(block + 8);
      });
    });
    suite.Add("cookie/looked at/" + std::to_string(size) + " bytes", [size](Case& result) {
      ExpectAbort(result, Fault::kInterior, [size] {
        WarmUp(size);
        char* const block = static_cast<char*>(Api().malloc(size));
        Announce(block + 8);
        if (Api().realloc(block + 8, 2 * size) != nullptr) _exit(5);
      });
    });
  }
}

}  // namespace

void AddInvalidFreeDeaths(Suite& suite) {
  AddForeign(suite);
  AddMappings(suite);
  AddWild(suite);
  AddMisaligned(suite);
  AddInterior(suite);
  AddInteriorInCaches(suite);
  AddCookies(suite);
}

}  // namespace tcmalloc::testing
