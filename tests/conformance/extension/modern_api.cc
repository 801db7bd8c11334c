// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Calls all of tcmalloc/malloc_extension.h: before main, in threads, in the child of a fork, in
// signal handlers and after the destructors of the program. One source for a program that is linked
// with the library, one that it is preloaded into, and, with the argument "absent", one without it.

#include <dirent.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <tcmalloc/malloc_extension.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "conformance/extension/stage_check.h"

namespace {

using Extension = tcmalloc::MallocExtension;
using LimitKind = Extension::LimitKind;

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kNone = std::numeric_limits<size_t>::max();

size_t Value(std::string_view name) {
  const std::optional<size_t> value = Extension::GetNumericProperty(name);
  CHECK(value.has_value());
  return *value;
}

// Counts the threads of the process; at least 1.
size_t CountThreads() {
  size_t count = 0;
  DIR* directory = opendir("/proc/self/task");
  CHECK(directory != nullptr);
  while (const dirent* entry = readdir(directory)) count += entry->d_name[0] != '.' ? 1 : 0;
  closedir(directory);
  return count;
}

void CheckStatistics() {
  const std::string text = Extension::GetStats();
  CHECK(text.find("Bytes in use by application") != std::string::npos);
  CHECK(text.find("PageHeap: ") != std::string::npos);
  CHECK(text.find('\0') == std::string::npos && text.back() == '\n');

  CHECK(Value("generic.current_allocated_bytes") <= Value("generic.heap_size"));
  CHECK(Value(std::string_view("generic.heap_size and more").substr(0, 17)) > 0);
  for (const char* name : {"", "no.such.property", "generic.heap_size and more"}) {
    CHECK(!Extension::GetNumericProperty(name).has_value());
  }
  CHECK(!Extension::GetNumericProperty(std::string_view()).has_value());
  const Extension::PropertyMap properties = Extension::GetProperties();
  CHECK(properties.size() > 30);
  CHECK(properties.count("tcmalloc.page_heap_free") == 1);
  CHECK(properties.at("generic.heap_size").value > 0);
  CHECK(properties.at("generic.peak_memory_usage").value > 0);
  CHECK(properties.at("tcmalloc.experiment.TEST_ONLY_L3_AWARE").value == 0);
  for (const auto& property : properties) {
    CHECK(Extension::GetNumericProperty(property.first).has_value());
  }
}

// All properties of one call are of the same moment, whatever other threads do.
void CheckPropertiesBesideThreads() {
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 3; ++i) {
    threads.emplace_back([&stop, i] {
      std::vector<void*> blocks(500);
      for (unsigned n = i; !stop.load(std::memory_order_relaxed); n = n * 1664525 + 1013904223) {
        void*& block = blocks[n / 65536 % blocks.size()];
        std::free(block);
        block = std::malloc(n % 64 == 0 ? n / 4096 % 2'000'000 : n / 4096 % 3000);
      }
      for (void* block : blocks) std::free(block);
    });
  }
  for (int i = 0; i < 500; ++i) {
    const Extension::PropertyMap properties = Extension::GetProperties();
    const size_t physical = properties.at("generic.physical_memory_used").value;
    CHECK(physical <= properties.at("generic.virtual_memory_used").value);
    CHECK(properties.at("generic.current_allocated_bytes").value <= physical);
    CHECK(properties.at("tcmalloc.required_bytes").value <= physical);
    CHECK(properties.at("generic.heap_size").value <=
          properties.at("generic.virtual_memory_used").value);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

void CheckBlocks() {
  for (const size_t size : {0, 1, 100, 5000, 300'000, 5'000'000}) {
    void* block = std::malloc(size);
    CHECK(Extension::GetAllocatedSize(block) >= size);
    CHECK(Extension::GetAllocatedSize(block) == Extension::GetEstimatedAllocatedSize(size));
    CHECK(Extension::GetOwnership(block) == Extension::Ownership::kOwned);
    CHECK(nallocx(size, 0) == Extension::GetEstimatedAllocatedSize(size));
    sdallocx(block, size, 0);
  }
  CHECK(Extension::GetEstimatedAllocatedSize(kNone) == 0);
  CHECK(Extension::GetAllocatedSize(nullptr) == size_t{0});
  CHECK(Extension::GetOwnership(nullptr) == Extension::Ownership::kNotOwned);
  int local = 0;
  const uintptr_t strange[] = {
      1, 8, 4096, ~uintptr_t{0}, uintptr_t{1} << 63, reinterpret_cast<uintptr_t>(&local)};
  for (const uintptr_t address : strange) {
    const void* pointer = reinterpret_cast<const void*>(address);
    CHECK(Extension::GetOwnership(pointer) == Extension::Ownership::kNotOwned);
    CHECK(!Extension::GetAllocatedSize(pointer).has_value());
  }
  const tcmalloc::sized_ptr_t sized = tcmalloc_size_returning_operator_new(1000);
  CHECK(sized.n == Extension::GetAllocatedSize(sized.p));
  ::operator delete(sized.p);
}

// Objects of many sizes, in both kinds of spans, and none of them when it returns.
void AllocateAndFree(size_t bytes) {
  std::vector<void*> blocks;
  for (size_t i = 0; bytes > 0; ++i) {
    const size_t size = std::min(bytes, i % 7 == 0 ? size_t{100'000} : size_t{2'000});
    blocks.push_back(std::malloc(size));
    CHECK(blocks.back() != nullptr);
    std::memset(blocks.back(), 1, size);
    bytes -= size;
  }
  for (void* block : blocks) std::free(block);
}

void CheckRelease() {
  std::free(std::malloc(1000));
  Extension::MarkThreadIdle();
  Extension::MarkThreadBusy();
  for (const int cpu : {-1, std::numeric_limits<int>::min(), std::numeric_limits<int>::max()}) {
    CHECK(Extension::ReleaseCpuMemory(cpu) == 0);
  }
  AllocateAndFree(8 * kMiB);
  const size_t cached = Value("tcmalloc.cpu_free");
  size_t released = 0;
  for (int cpu = 0; cpu < 4096; ++cpu) released += Extension::ReleaseCpuMemory(cpu);
  CHECK(Extension::PerCpuCachesActive() == (Value("tcmalloc.per_cpu_caches_active") == 1));
  if (Extension::PerCpuCachesActive()) CHECK(cached > 0 && released > 0);
  CHECK(Value("tcmalloc.cpu_free") < kMiB);

  AllocateAndFree(64 * kMiB);
  const size_t asked = Value("tcmalloc.num_released_release_memory_to_system_bytes");
  Extension::ReleaseMemoryToSystem(0);
  Extension::ReleaseMemoryToSystem(1);
  Extension::ReleaseMemoryToSystem(kNone);
  CHECK(Value("tcmalloc.page_heap_free") <= kMiB);
  CHECK(Value("tcmalloc.num_released_release_memory_to_system_bytes") > asked);
}

void CheckSoftLimit() {
  CHECK(Extension::GetMemoryLimit(LimitKind::kSoft) == kNone);
  AllocateAndFree(64 * kMiB);
  const size_t needed = Value("generic.current_allocated_bytes");
  const size_t wanted = needed + 16 * kMiB + 1;
  Extension::SetMemoryLimit(wanted, LimitKind::kSoft);
  const size_t limit = Extension::GetMemoryLimit(LimitKind::kSoft);
  CHECK(limit >= wanted && limit < wanted + kMiB);
  CHECK(Value("tcmalloc.desired_usage_limit_bytes") == limit);
  CHECK(Value("generic.heap_size") <= limit + kMiB);
  // On a slow machine most of it went by time before the limit was set.
  for (int i = 0; i < 20 && Value("tcmalloc.num_released_soft_limit_exceeded_bytes") == 0; ++i) {
    Extension::SetMemoryLimit(kNone, LimitKind::kSoft);
    AllocateAndFree(64 * kMiB);
    Extension::SetMemoryLimit(limit, LimitKind::kSoft);
  }
  CHECK(Value("tcmalloc.num_released_soft_limit_exceeded_bytes") > 0);
  CHECK(Value("tcmalloc.successful_shrinks_after_soft_limit_hit") <=
        Value("tcmalloc.soft_limit_hits"));
  // Nothing fails, and what is free again goes.
  AllocateAndFree(64 * kMiB);
  Extension::SetMemoryLimit(limit, LimitKind::kSoft);
  CHECK(Value("generic.heap_size") <= limit + kMiB);
  for (const size_t none : {size_t{0}, size_t{1} << 63, kNone}) {
    Extension::SetMemoryLimit(limit, LimitKind::kSoft);
    Extension::SetMemoryLimit(none, LimitKind::kSoft);
    CHECK(Extension::GetMemoryLimit(LimitKind::kSoft) == kNone);
  }
}

void CheckHardLimit() {
  CHECK(Extension::GetMemoryLimit(LimitKind::kHard) == kNone);
  AllocateAndFree(64 * kMiB);
  const size_t limit = Value("generic.current_allocated_bytes") + 24 * kMiB + 1;
  Extension::SetMemoryLimit(limit, LimitKind::kHard);
  const size_t rounded = Extension::GetMemoryLimit(LimitKind::kHard);
  CHECK(rounded >= limit && rounded < limit + kMiB);
  CHECK(Value("tcmalloc.hard_usage_limit_bytes") == rounded);
  CHECK(Value("tcmalloc.heap_limit_mb") == (rounded + kMiB - 1) / kMiB);
  CHECK(Value("generic.heap_size") <= rounded);
  const size_t hits = Value("tcmalloc.hard_limit_hits");
  errno = 0;
  CHECK(std::malloc(64 * kMiB) == nullptr && errno == ENOMEM);
  CHECK(Value("tcmalloc.hard_limit_hits") > hits);
  bool thrown = false;
  try {
    ::operator delete(::operator new(64 * kMiB));
  } catch (const std::bad_alloc&) {
    thrown = true;
  }
  CHECK(thrown);
  void* block = std::malloc(8 * kMiB);
  CHECK(block != nullptr);
  std::free(block);
  for (const size_t none : {size_t{0}, kNone, kNone - 1}) {
    Extension::SetMemoryLimit(limit, LimitKind::kHard);
    Extension::SetMemoryLimit(none, LimitKind::kHard);
    CHECK(Extension::GetMemoryLimit(LimitKind::kHard) == kNone);
  }
  AllocateAndFree(64 * kMiB);
}

void CheckCaches() {
  const int32_t per_cpu = Extension::GetMaxPerCpuCacheSize();
  CHECK(per_cpu >= 64 << 10);
  for (const auto& [set, got] : {std::pair<int32_t, int32_t>{1 << 20, 1 << 20},
                                 {-5, 64 << 10},
                                 {0, 64 << 10},
                                 {std::numeric_limits<int32_t>::max(), 1 << 30}}) {
    Extension::SetMaxPerCpuCacheSize(set);
    CHECK(Extension::GetMaxPerCpuCacheSize() == got);
  }
  Extension::SetMaxPerCpuCacheSize(per_cpu);
  const int64_t total = Extension::GetMaxTotalThreadCacheBytes();
  CHECK(total >= 512 << 10);
  for (const auto& [set, got] : {std::pair<int64_t, int64_t>{3 << 20, 3 << 20},
                                 {-1, 512 << 10},
                                 {std::numeric_limits<int64_t>::max(), 1 << 30}}) {
    Extension::SetMaxTotalThreadCacheBytes(set);
    CHECK(Extension::GetMaxTotalThreadCacheBytes() == got);
  }
  Extension::SetMaxTotalThreadCacheBytes(3 << 20);
  CHECK(Value("tcmalloc.max_total_thread_cache_bytes") <= 3 << 20);
  Extension::SetMaxTotalThreadCacheBytes(total);
}

void CheckBackground() {
  using std::chrono::nanoseconds;
  CHECK(!Extension::GetBackgroundProcessActionsEnabled());
  CHECK(Extension::NeedsProcessBackgroundActions());
  const size_t threads = CountThreads();
  Extension::SetBackgroundProcessActionsEnabled(true);
  Extension::SetBackgroundProcessActionsEnabled(true);
  CHECK(Extension::GetBackgroundProcessActionsEnabled());
  CHECK(!Extension::NeedsProcessBackgroundActions());
  CHECK(CountThreads() == threads + 1);

  CHECK(Extension::GetBackgroundProcessSleepInterval() == nanoseconds(0));
  Extension::SetBackgroundProcessSleepInterval(std::chrono::milliseconds(5));
  CHECK(Extension::GetBackgroundProcessSleepInterval() == nanoseconds(5'000'000));
  Extension::SetBackgroundProcessSleepInterval(nanoseconds::max());
  CHECK(Extension::GetBackgroundProcessSleepInterval() == nanoseconds::max());
  Extension::SetBackgroundProcessSleepInterval(nanoseconds::min());
  CHECK(Extension::GetBackgroundProcessSleepInterval() == nanoseconds(0));

  for (const size_t rate : {kMiB, kNone, size_t{0}}) {
    Extension::SetBackgroundReleaseRate(Extension::BytesPerSecond{rate});
    CHECK(static_cast<size_t>(Extension::GetBackgroundReleaseRate()) == rate);
  }
  Extension::SetBackgroundProcessActionsEnabled(false);
  Extension::SetBackgroundProcessActionsEnabled(false);
  CHECK(!Extension::GetBackgroundProcessActionsEnabled());
  CHECK(Extension::NeedsProcessBackgroundActions());
}

void CallEverything(const char* where) {
  stage = where;
  errno = 77;
  CheckStatistics();
  CheckBlocks();
  CheckRelease();
  CheckCaches();
  CHECK(errno == 77);
}

// Nothing of it waits in a handler.
void OnAlarm(int) {
  static_cast<void>(Extension::GetNumericProperty("generic.heap_size"));
  Extension::MarkThreadIdle();
  Extension::ReleaseMemoryToSystem(1);
  static_cast<void>(Extension::ReleaseCpuMemory(0));
  Extension::SetMemoryLimit(1024 * kMiB, LimitKind::kSoft);
  static_cast<void>(Extension::GetMemoryLimit(LimitKind::kSoft));
  CHECK(Extension::GetAllocatedSize(nullptr) == size_t{0});
}

void InterruptOften() {
  stage = "interrupted";
  signal(SIGALRM, OnAlarm);
  const itimerval often = {{0, 200}, {0, 200}};
  CHECK(setitimer(ITIMER_REAL, &often, nullptr) == 0);
  for (int i = 0; i < 20; ++i) AllocateAndFree(kMiB);
  const itimerval never = {};
  CHECK(setitimer(ITIMER_REAL, &never, nullptr) == 0);
  signal(SIGALRM, SIG_DFL);
  Extension::SetMemoryLimit(0, LimitKind::kSoft);
}

bool absent = false;

__attribute__((constructor(101))) void First() {
  if (&tcmalloc_get_stats == nullptr) {
    absent = true;
  } else {
    CallEverything("before the constructors");
  }
}
__attribute__((destructor(101))) void Last() {
  if (!absent) CallEverything("after the destructors");
}

// Checks what each function promises where the library is not there.
int RunWithoutLibrary() {
  stage = "without the library";
  CHECK(absent);
  CHECK(Extension::GetStats().empty());
  CHECK(!Extension::GetNumericProperty("generic.heap_size").has_value());
  CHECK(Extension::GetProperties().empty());
  Extension::MarkThreadIdle();
  Extension::MarkThreadBusy();
  CHECK(Extension::ReleaseCpuMemory(0) == 0);
  Extension::ReleaseMemoryToSystem(1);
  for (const LimitKind kind : {LimitKind::kSoft, LimitKind::kHard}) {
    Extension::SetMemoryLimit(1, kind);
    CHECK(Extension::GetMemoryLimit(kind) == kNone);
  }
  CHECK(!Extension::PerCpuCachesActive());
  Extension::SetMaxPerCpuCacheSize(1 << 20);
  CHECK(Extension::GetMaxPerCpuCacheSize() == 0);
  Extension::SetMaxTotalThreadCacheBytes(1 << 20);
  CHECK(Extension::GetMaxTotalThreadCacheBytes() == 0);
  Extension::SetBackgroundProcessActionsEnabled(true);
  CHECK(!Extension::GetBackgroundProcessActionsEnabled());
  Extension::SetBackgroundProcessSleepInterval(std::chrono::seconds(1));
  CHECK(Extension::GetBackgroundProcessSleepInterval() == std::chrono::seconds(0));
  Extension::SetBackgroundReleaseRate(Extension::BytesPerSecond{1});
  CHECK(Extension::GetBackgroundReleaseRate() == Extension::BytesPerSecond{0});
  CHECK(!Extension::NeedsProcessBackgroundActions());
  Extension::ProcessBackgroundActions();
  CHECK(Extension::GetEstimatedAllocatedSize(5) == 5);
  CHECK(!Extension::GetAllocatedSize(nullptr).has_value());
  CHECK(Extension::GetOwnership(nullptr) == Extension::Ownership::kUnknown);
  CHECK(&nallocx == nullptr && &sdallocx == nullptr);
  const tcmalloc::sized_ptr_t plain = tcmalloc_size_returning_operator_new(5);
  const tcmalloc::sized_ptr_t aligned = tcmalloc_size_returning_operator_new_aligned_hot_cold(
      64, std::align_val_t{64}, tcmalloc::hot_cold_t{0});
  CHECK(plain.n == 5 && aligned.n == 64 && reinterpret_cast<uintptr_t>(aligned.p) % 64 == 0);
  ::operator delete(plain.p);
  ::operator delete(aligned.p, std::align_val_t{64});
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "absent") == 0) return RunWithoutLibrary();
  CHECK(!absent);
  CallEverything("main");
  CheckSoftLimit();
  CheckHardLimit();
  CheckBackground();
  std::thread([] { CallEverything("a thread"); }).join();
  CheckPropertiesBesideThreads();
  InterruptOften();
  const pid_t child = fork();
  if (child == 0) {
    CallEverything("the child of a fork");
    CheckBackground();
    std::exit(0);
  }
  int status = 0;
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  return 0;
}
