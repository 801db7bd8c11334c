// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "integration/limits/heap_limit_probes.h"

#include <malloc.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "conformance/malloc_api.h"
#include "conformance/resident.h"
#include "integration/limits/address_limit.h"
#include "integration/limits/require.h"

namespace tcmalloc::testing {
namespace {

constexpr int kThreads = 64;

// The allocator's statistics as XML.
std::string Statistics() {
  char text[32 * kKiB] = {};
  FILE* const file = fmemopen(text, sizeof(text) - 1, "w");
  Require(file != nullptr && malloc_info(0, file) == 0, "malloc_info");
  std::fclose(file);
  return text;
}

Size Figure(const char* name) {
  const std::string text = Statistics();
  const std::string wanted = std::string("name=\"") + name + "\" value=\"";
  const Size found = text.find(wanted);
  Require(found != std::string::npos, name);
  return std::strtoull(text.c_str() + found + wanted.size(), nullptr, 10);
}

// Touched blocks, linked through their first words, so that keeping them takes no memory.
class Hoard {
 public:
  explicit Hoard(unsigned char mark) : mark_(mark) {}

  // False where there was no memory; errno must say so then.
  bool Grow(Size size) {
    errno = 0;
    void* const memory = Api().malloc(size);
    if (memory == nullptr) {
      Require(errno == ENOMEM, "errno of malloc without memory", static_cast<Size>(errno), ENOMEM);
      return false;
    }
    std::memset(memory, mark_, size);
    head_ = new (memory) Block{head_, size};
    bytes_ += size;
    return true;
  }
  void MustGrow(Size bytes, Size size) {
    for (Size had = bytes_; bytes_ < had + bytes;) Require(Grow(size), "malloc", bytes_, bytes);
  }

  void FreeAll() {
    while (head_ != nullptr) {
      Block* const block = head_;
      head_ = block->next;
      const auto* bytes = reinterpret_cast<const unsigned char*>(block);
      for (Size i = sizeof(Block); i < block->size; i += 61) {
        Require(bytes[i] == mark_, "contents of a block", bytes[i], mark_);
      }
      Api().free(block);
    }
    bytes_ = 0;
  }

  Size bytes() const { return bytes_; }

 private:
  struct Block {
    Block* next;
    Size size;
  };

  Block* head_ = nullptr;
  Size bytes_ = 0;
  unsigned char mark_;
};

Size MegabytesIn(const char* argument) { return std::strtoull(argument, nullptr, 10) * kMiB; }

void RequireAtMost(Size figure, Size most, const char* what) {
  Require(figure <= most, what, figure, most);
}
void RequireAtLeast(Size figure, Size least, const char* what) {
  Require(figure >= least, what, figure, least);
}

// All threads take memory until there is none, twice; each is told so, and loses nothing.
void HardThreads(const char* argument) {
  const Size limit = MegabytesIn(argument);
  std::atomic<Size> obtained{0};
  std::atomic<Size> resident{0};
  std::barrier all(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      Hoard hoard(static_cast<unsigned char>(i + 1));
      for (int round = 0; round < 2; ++round) {
        all.arrive_and_wait();
        Size size = 100 + static_cast<Size>(i) * 1000;
        while (hoard.Grow(size)) size = size * 7 % (90 * kKiB) + 16;
        obtained += hoard.bytes();
        all.arrive_and_wait();
        if (i == 0) {
          resident = ResidentBytes();
          RequireAtLeast(obtained.exchange(0), limit / 2, "bytes that all threads obtained");
        }
        hoard.FreeAll();
        all.arrive_and_wait();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  RequireAtMost(resident, limit + 32 * kMiB, "resident bytes under the limit");
  RequireAtLeast(Figure("hard_limit_hits"), kThreads, "hits of the limit");
  Hoard after(1);
  after.MustGrow(limit / 2, 10 * kKiB);
  after.FreeAll();
}

// Small blocks of many size classes, so that caches keep much of what is freed of them.
Size SmallSize(Size i) { return 64 + i * 1237 % (20 * kKiB); }

// Checks that caches give up what they hold before a request fails.
void HardCaches(const char* argument) {
  const Size limit = MegabytesIn(argument);
  Hoard small(1);
  for (Size i = 0; small.Grow(SmallSize(i)); ++i) {
  }
  RequireAtLeast(small.bytes(), limit / 2, "bytes in small blocks");
  small.FreeAll();
  Hoard large(2);
  while (large.Grow(kMiB)) {
  }
  RequireAtLeast(large.bytes(), limit / 10 * 9, "bytes in large blocks");
  large.FreeAll();
  const Size shed = Figure("shed_by_caches") + Figure("shed_by_transfer");
  Require(shed > 0, "bytes shed by caches");
}

void HardLarge(const char* argument) {
  const Size limit = MegabytesIn(argument);
  Require(Api().malloc(limit + 1) == nullptr, "a block beyond the limit");
  Hoard hoard(1);
  while (hoard.Grow(kMiB)) {
  }
  RequireAtLeast(hoard.bytes(), limit / 10 * 9, "bytes in blocks of 1 MiB");
  RequireAtMost(hoard.bytes(), limit, "bytes in blocks of 1 MiB");
  RequireAtLeast(Figure("hard_limit_hits"), 2, "hits of the limit");
  hoard.FreeAll();
}

// Memory that was cut off blocks does not read as zero. Frees `block`, which has `size` bytes.
void RequireDirtyCutsAreZeroed(char* block, Size size) {
  for (; size > 4 * kMiB; size /= 2) {
    std::memset(block, 9, size);
    Require(Api().realloc(block, size / 2) == block, "a long block stays where it is", size / 2);
    const Size cut = size / 3;
    auto* const zeroed = static_cast<char*>(Api().calloc(1, cut));
    Require(zeroed != nullptr, "zeroed memory", cut);
    for (Size i = 0; i < cut; i += 509) Require(zeroed[i] == 0, "calloc of what was cut", i);
    Api().free(zeroed);
  }
  Api().free(block);
}

// A block never fails to shrink, and a long one does so where it is.
void HardShrink(const char* argument) {
  const Size limit = MegabytesIn(argument);
  const Size most = limit / 10 * 9;
  auto* const block = static_cast<char*>(Api().malloc(most));
  Require(block != nullptr, "a block of nine tenths of the limit");
  std::memset(block, 7, most);
  // The block grows again into what was cut off.
  for (const Size size : {most / 2, most / 4, most / 2, most / 4}) {
    Require(Api().realloc(block, size) == block, "a long block stays where it is", size);
    RequireAtMost(Api().malloc_usable_size(block), size + 64 * kKiB, "bytes of a shrunk block");
    Require(block[0] == 7 && block[size - 1] == 7, "contents of a shrunk block");
  }
  // The rest serves others, who leave nothing.
  auto* const medium = static_cast<char*>(Api().malloc(400 * kKiB));
  Require(medium != nullptr, "a block of a few pages");
  std::memset(medium, 8, 400 * kKiB);
  Hoard hoard(1);
  while (hoard.Grow(100'000)) {
  }
  RequireAtLeast(hoard.bytes() + most / 4, limit / 10 * 8, "bytes when all is in use");
  auto* const tiny = static_cast<char*>(Api().realloc(medium, 1000));
  Require(tiny != nullptr && tiny[0] == 8 && tiny[999] == 8, "a block of pages shrinks when full");
  hoard.FreeAll();
  Api().free(tiny);
  RequireDirtyCutsAreZeroed(block, most / 4);
}

Size CachedBytes() { return Figure("thread_free") + Figure("cpu_free"); }

// Frees blocks, which then stay in caches.
void FillCaches() {
  Hoard hoard(1);
  for (Size i = 0; i < 1000; ++i) Require(hoard.Grow(SmallSize(i)), "a small block");
  hoard.FreeAll();
}

// Nobody's caches are given up for a request that they cannot help.
void RequireVain(Size size) {
  FillCaches();
  const Size cached = CachedBytes();
  Require(cached > 0, "bytes in caches before a vain request");
  const Size shed = Figure("shed_by_caches") + Figure("shed_by_transfer");
  for (int i = 0; i < 10; ++i) Require(Api().malloc(size) == nullptr, "a vain request", size);
  const Size more = Figure("shed_by_caches") + Figure("shed_by_transfer") - shed;
  Require(more == 0, "bytes shed for a vain request", more, 0);
}

void HardProbes(const char* argument) {
  const Size limit = MegabytesIn(argument);
  for (const Size size : {limit + kMiB, 10 * limit, Size{1} << 46}) RequireVain(size);
}

// Where the address space is limited, a request beyond it is vain. One that the caches can serve
// succeeds: nothing else is left.
void AddressSpace(const char* argument) {
  const Size limit = MegabytesIn(argument);
  // More than the addresses of a process: 64 TiB may be had where the kernel overcommits memory.
  RequireVain(Size{1} << 47);
  LimitAddressSpace(limit);
  for (const Size size : {limit, 2 * limit, Size{1} << 46}) RequireVain(size);
  Hoard small(1);
  for (Size i = 0; small.Grow(SmallSize(i)); ++i) {
  }
  small.FreeAll();
  // Then no shed is waited for, whatever there was before.
  const Size cached = CachedBytes();
  Hoard large(2);
  while (large.Grow(kMiB)) {
  }
  Require(CachedBytes() <= cached / 2, "bytes that caches keep while requests fail", CachedBytes(),
          cached / 2);
  large.FreeAll();
}

// Allocates and frees as a program does that goes on, until `done`; the memory of the process may
// follow a change of limits only as the process allocates. Bounded, so that a failure is told.
template <typename Done>
void WorkUntil(Done done, const char* what) {
  constexpr time_t kSeconds = 60;
  const time_t end = time(nullptr) + kSeconds;
  while (!done()) {
    Require(time(nullptr) < end, what);
    for (int i = 0; i < 300; ++i)
      Api().free(Api().malloc(64 * kKiB * static_cast<Size>(i % 8 + 5)));
  }
}

// Memory that was freed above the limit goes back as the heap grows.
void SoftGivesBack(const char* argument) {
  const Size limit = MegabytesIn(argument);
  Hoard most(1);
  most.MustGrow(3 * limit, 100 * kKiB);
  RequireAtLeast(ResidentBytes(), 3 * limit, "resident bytes while in use");
  most.FreeAll();
  WorkUntil([&] { return ResidentBytes() < limit + 16 * kMiB; }, "resident memory falls");
  Require(Figure("soft_limit") == limit, "soft limit", Figure("soft_limit"), limit);
  RequireAtLeast(Figure("soft_limit_hits"), 1, "sheds for the soft limit");
  RequireAtLeast(Figure("shed_by_page_heap"), limit, "bytes given back");
  Require(Figure("hard_limit_hits") == 0, "no hard limit");
}

void SoftNeverFails(const char* argument) {
  const Size limit = MegabytesIn(argument);
  Hoard hoard(1);
  for (const Size size : {Size{64}, 5 * kKiB, 300 * kKiB, 3 * kMiB}) hoard.MustGrow(limit, size);
  hoard.FreeAll();
}

void SoftThreads(const char* argument) {
  const Size limit = MegabytesIn(argument);
  std::barrier all(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      Hoard hoard(static_cast<unsigned char>(i + 1));
      for (int round = 0; round < 20; ++round) {
        hoard.MustGrow(3 * limit / kThreads, 200 + static_cast<Size>(i) * 900);
        if (round % 8 == 0) all.arrive_and_wait();
        hoard.FreeAll();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  WorkUntil([&] { return ResidentBytes() < limit + 32 * kMiB; }, "resident memory falls");
}

constexpr Size kFreed = 160 * kMiB;

void FreeMuch() {
  Hoard most(1);
  most.MustGrow(kFreed, 100 * kKiB);
  most.FreeAll();
  RequireAtLeast(ResidentBytes(), kFreed / 10 * 9, "resident bytes after freeing");
}

void KeepsMemory(const char*) {
  FreeMuch();
  for (int i = 0; i < 100'000; ++i) Api().free(Api().malloc(700 * kKiB));
  RequireAtLeast(ResidentBytes(), kFreed / 10 * 9, "resident bytes after work");
}

void WriteFile(const std::string& path, const char* text) {
  const std::string fresh = path + ".new";
  FILE* const file = std::fopen(fresh.c_str(), "we");
  Require(file != nullptr && std::fputs(text, file) >= 0, "writing a file");
  std::fclose(file);
  Require(std::rename(fresh.c_str(), path.c_str()) == 0, "renaming a file");
}

void ShrinkingCgroup(const char* root) {
  FreeMuch();
  Require(Figure("soft_limit") == 0, "no limit yet");
  WriteFile(std::string(root) + "/sys/fs/cgroup/app/memory.max", "83886080\n");
  WorkUntil([] { return ResidentBytes() < 80 * kMiB; }, "resident memory follows the limit");
  Require(Figure("soft_limit") == 72 * kMiB, "nine tenths", Figure("soft_limit"), 72 * kMiB);
  WriteFile(std::string(root) + "/sys/fs/cgroup/app/memory.high", "33554432\n");
  WorkUntil([] { return ResidentBytes() < 40 * kMiB; }, "resident memory follows memory.high");
  WriteFile(std::string(root) + "/sys/fs/cgroup/app/memory.high", "max\n");
  WriteFile(std::string(root) + "/sys/fs/cgroup/app/memory.max", "max\n");
  WorkUntil([] { return Figure("soft_limit") == 0; }, "the limit is lifted");
}

// Without a background thread.
void GrowingInCgroup(const char* root) {
  Hoard hoard(1);
  hoard.MustGrow(20 * kMiB, 100 * kKiB);
  Require(Figure("soft_limit") == 0, "no limit yet");
  WriteFile(std::string(root) + "/sys/fs/cgroup/app/memory.max", "4194304000\n");
  const time_t end = time(nullptr) + 60;
  while (Figure("soft_limit") == 0) {
    Require(time(nullptr) < end, "the limit is found");
    hoard.MustGrow(kMiB, 100 * kKiB);
    if (hoard.bytes() > 300 * kMiB) hoard.FreeAll();
  }
  hoard.FreeAll();
}

void Pressure(const char* root) {
  FreeMuch();
  WriteFile(std::string(root) + "/sys/fs/cgroup/app/memory.pressure",
            "some avg10=25.00 avg60=9.00 avg300=1.00 total=99\n");
  WorkUntil([] { return ResidentBytes() < kFreed / 4; }, "resident memory falls");
  RequireAtLeast(Figure("pressure_hits"), 1, "sheds under pressure");
}

// Checks that so many threads share the caches of CPUs, or would if the kernel had what that needs.
void CpuQuota(const char* argument) {
  constexpr int kSome = 24;
  std::barrier all(kSome);
  std::vector<std::thread> threads;
  std::atomic<bool> shared{false};
  for (int i = 1; i < kSome; ++i) {
    threads.emplace_back([&] {
      Api().free(Api().malloc(100));
      all.arrive_and_wait();
      all.arrive_and_wait();
    });
  }
  all.arrive_and_wait();
  const std::string text = Statistics();
  shared = text.find("<front_end name=\"per_cpu\"") != std::string::npos ||
           text.find("not per CPU") != std::string::npos;
  all.arrive_and_wait();
  for (std::thread& thread : threads) thread.join();
  Require(shared == (std::strcmp(argument, "shared") == 0), argument);
}

// The kernel would kill the process, or make it wait, above the limit.
void RealLimit(const char* argument) {
  const Size limit = std::strtoull(argument, nullptr, 10);
  for (int round = 0; round < 3; ++round) {
    Hoard hoard(1);
    hoard.MustGrow(limit / 10 * 7, 10 * kKiB + static_cast<Size>(round) * 90 * kKiB);
    hoard.FreeAll();
  }
  WorkUntil([&] { return Figure("soft_limit") != 0; }, "the cgroup's limit is found");
  const Size soft = Figure("soft_limit");
  RequireAtMost(soft, limit / 10 * 9, "soft limit");
  RequireAtLeast(soft, limit / 2, "soft limit");
  Hoard hoard(2);
  hoard.MustGrow(soft / 10 * 9, 100 * kKiB);
  hoard.FreeAll();
  WorkUntil([&] { return ResidentBytes() < limit; }, "resident memory stays below the limit");
}

constexpr HeapLimitProbe kProbes[] = {
    {"hard-threads", HardThreads},
    {"hard-caches", HardCaches},
    {"hard-large", HardLarge},
    {"hard-shrink", HardShrink},
    {"hard-probes", HardProbes},
    {"address-space", AddressSpace},
    {"soft-gives-back", SoftGivesBack},
    {"soft-never-fails", SoftNeverFails},
    {"soft-threads", SoftThreads},
    {"keeps-memory", KeepsMemory},
    {"shrinking-cgroup", ShrinkingCgroup},
    {"growing-in-cgroup", GrowingInCgroup},
    {"pressure", Pressure},
    {"cpu-quota", CpuQuota},
    {"real-cgroup", RealLimit},
};

}  // namespace

std::span<const HeapLimitProbe> HeapLimitProbes() { return kProbes; }

}  // namespace tcmalloc::testing
