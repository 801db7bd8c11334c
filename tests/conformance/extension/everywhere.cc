// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Calls all of MallocExtension before main, in threads and their destructors, in the child of a
// fork, in a signal handler, and after the destructors of the program. It is compiled with
// gperftools' own header as well.
//
// An argument leaves out what looks at the types of objects, for which the C++ library must be in
// the process before the allocator.

#include <gperftools/malloc_extension.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <typeinfo>
#include <vector>

#include "conformance/extension/stage_check.h"

namespace {

MallocExtension& Extension() { return *MallocExtension::instance(); }

bool Contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

size_t Value(const char* name) {
  size_t value = 0;
  CHECK(Extension().GetNumericProperty(name, &value));
  return value;
}

struct RangesSeen {
  const char* wanted;
  size_t count;
  uintptr_t end;
  base::MallocRange::Type type;
};

void SeeRange(void* argument, const base::MallocRange* range) {
  auto* seen = static_cast<RangesSeen*>(argument);
  std::free(std::malloc(100));  // no lock is held
  CHECK(range->address >= seen->end);
  CHECK(range->fraction >= 0 && range->fraction <= 1);
  ++seen->count;
  seen->end = range->address + range->length;
  const auto wanted = reinterpret_cast<uintptr_t>(seen->wanted);
  if (range->address <= wanted && wanted < seen->end) seen->type = range->type;
}

void CheckTexts() {
  static char buffer[65536];
  Extension().GetStats(buffer, sizeof(buffer));
  CHECK(Contains(buffer, "Bytes in use by application"));
  CHECK(Contains(buffer, " bytes ] : ") && Contains(buffer, "PageHeap: "));
  buffer[10] = 'x';
  Extension().GetStats(buffer, 10);
  CHECK(std::strlen(buffer) == 9 && buffer[10] == 'x');
  Extension().GetStats(buffer, 0);
  CHECK(std::strlen(buffer) == 9);

  std::string text = "before ";
  Extension().GetHeapSample(&text);
  CHECK(text.compare(0, 12, "before %warn") == 0);
  text.clear();
  Extension().GetHeapGrowthStacks(&text);
  CHECK(text.compare(0, 14, "heap profile: ") == 0 && Contains(text, "@ growth\n"));
  CHECK(Contains(text, "MAPPED_LIBRARIES:\n"));
  int period = -1;
  delete[] Extension().ReadStackTraces(&period);
  CHECK(period == 0);
  void** growth = Extension().ReadHeapGrowthStackTraces();
  CHECK(growth != nullptr && growth[0] != nullptr);
  delete[] growth;
}

void CheckBlock(size_t size) {
  char* block = static_cast<char*>(std::malloc(size));
  CHECK(Extension().GetAllocatedSize(block) >= size);
  CHECK(Extension().GetAllocatedSize(block) == Extension().GetEstimatedAllocatedSize(size));
  CHECK(Extension().GetAllocatedSize(nullptr) == 0);
  int local = 0;
  CHECK(Extension().GetOwnership(block) == MallocExtension::kOwned);
  CHECK(Extension().GetOwnership(&local) == MallocExtension::kNotOwned);
  CHECK(Extension().GetOwnership(nullptr) == MallocExtension::kNotOwned);
  CHECK(Extension().VerifyMallocMemory(block));
  RangesSeen seen = {block, 0, 0, base::MallocRange::UNKNOWN};
  Extension().Ranges(&seen, SeeRange);
  CHECK(seen.count > 0 && seen.type == base::MallocRange::INUSE);
  std::free(block);
}

void CheckProperties() {
  CHECK(Value("generic.current_allocated_bytes") <= Value("generic.heap_size"));
  CHECK(Value("generic.heap_size") > 0);
  size_t value = 12345;
  CHECK(!Extension().GetNumericProperty("no.such.property", &value) && value == 12345);
  CHECK(!Extension().SetNumericProperty("generic.heap_size", 1));
  const char* const name = "tcmalloc.max_total_thread_cache_bytes";
  CHECK(Extension().SetNumericProperty(name, 3 << 20) && Value(name) == 3 << 20);
  CHECK(Extension().SetNumericProperty(name, 1) && Value(name) == 512 << 10);
  CHECK(Extension().SetNumericProperty(name, 32 << 20));
}

void CheckFreeLists() {
  std::vector<MallocExtension::FreeListInfo> lists;
  Extension().GetFreeListSizes(&lists);
  std::string types;
  for (const MallocExtension::FreeListInfo& list : lists) {
    CHECK(list.min_object_size <= list.max_object_size);
    types += list.type;
    types += ' ';
  }
  for (const char* type : {"central ", "transfer ", "thread ", "page ", "page_unmapped ", "large ",
                           "large_unmapped "}) {
    CHECK(Contains(types, (std::string("tcmalloc.") + type).c_str()));
  }
}

void CheckThread() {
  std::free(std::malloc(1000));
  Extension().MarkThreadTemporarilyIdle();
  CHECK(Extension().GetThreadCacheSize() == 0);
  std::free(std::malloc(1000));
  Extension().MarkThreadIdle();
  CHECK(Extension().GetThreadCacheSize() == 0);
  Extension().MarkThreadBusy();
}

void CheckRelease() {
  Extension().ReleaseToSystem(1);
  Extension().ReleaseFreeMemory();
  const double before = Extension().GetMemoryReleaseRate();
  Extension().SetMemoryReleaseRate(5);
  CHECK(Extension().GetMemoryReleaseRate() == 5);
  Extension().SetMemoryReleaseRate(before);
}

void CheckDebugCalls() {
  CHECK(Extension().VerifyAllMemory() && Extension().VerifyNewMemory(nullptr));
  CHECK(Extension().VerifyArrayNewMemory(nullptr));
  int blocks = 1;
  size_t total = 1;
  int histogram[kMallocHistogramSize] = {1};
  CHECK(Extension().MallocMemoryStats(&blocks, &total, histogram));
  CHECK(blocks == 0 && total == 0 && histogram[0] == 0);
}

void CallEverything(const char* where) {
  stage = where;
  MallocExtension::Initialize();
  CheckTexts();
  CheckBlock(100);
  CheckBlock(1 << 20);
  CheckProperties();
  CheckFreeLists();
  CheckThread();
  CheckRelease();
  CheckDebugCalls();
}

// Counts what it passes on.
class CountingAllocator : public SysAllocator {
 public:
  explicit CountingAllocator(SysAllocator* next) : next_(next) {}
  void* Alloc(size_t size, size_t* actual_size, size_t alignment) override {
    ++calls;
    return next_->Alloc(size, actual_size, alignment);
  }

  int calls = 0;

 private:
  SysAllocator* next_;
};

void ReplaceTheSource() {
  stage = "source of memory";
  SysAllocator* const system = Extension().GetSystemAllocator();
  CHECK(system != nullptr);
  static CountingAllocator counting(system);
  Extension().SetSystemAllocator(&counting);
  CHECK(Extension().GetSystemAllocator() == &counting);
  const size_t before = Value("tcmalloc.pageheap_unmapped_bytes");
  char* const block = static_cast<char*>(std::calloc(1, size_t{100} << 20));
  CHECK(block != nullptr && counting.calls > 0);
  CHECK(block[0] == 0 && block[(size_t{100} << 20) - 1] == 0);
  std::free(block);
  Extension().ReleaseFreeMemory();
  CHECK(Value("tcmalloc.pageheap_unmapped_bytes") >= before + (size_t{100} << 20));
  Extension().SetSystemAllocator(system);
}

// Must not wait for locks that the interrupted code holds.
void OnSignal(int) {
  static char buffer[4096];
  size_t value = 0;
  Extension().GetStats(buffer, sizeof(buffer));
  Extension().GetNumericProperty("generic.heap_size", &value);
  Extension().SetNumericProperty("tcmalloc.aggressive_memory_decommit", 0);
  Extension().ReleaseToSystem(1);
  Extension().MarkThreadTemporarilyIdle();
  Extension().GetThreadCacheSize();
}

void InterruptOften() {
  stage = "signals";
  signal(SIGPROF, OnSignal);
  std::thread worker([] {
    const pthread_t self = pthread_self();
    std::thread sender([self] {
      for (int i = 0; i < 2000; ++i) pthread_kill(self, SIGPROF);
    });
    std::vector<void*> blocks(1000);
    for (int round = 0; round < 20; ++round) {
      for (size_t i = 0; i < blocks.size(); ++i) blocks[i] = std::malloc(i * 40);
      for (void* block : blocks) std::free(block);
    }
    sender.join();
  });
  worker.join();
  signal(SIGPROF, SIG_DFL);
}

// An extension that a program derives and registers, which serves the same calls.
class Derived : public MallocExtension {
 public:
  bool GetNumericProperty(const char*, size_t* value) override {
    *value = 42;
    return true;
  }
};

void RegisterAnother() {
  stage = "another extension";
  MallocExtension* const ours = MallocExtension::instance();
  static Derived derived;
  MallocExtension::Register(&derived);
  CHECK(MallocExtension::instance() == &derived);
  CHECK(Value("anything") == 42);
  CHECK(!Extension().SetNumericProperty("anything", 1));
  CHECK(Extension().GetOwnership(&derived) == MallocExtension::kUnknownOwnership);
  std::string profile;
  Extension().GetHeapSample(&profile);
  CHECK(!profile.empty());
  MallocExtension::Register(ours);
  CHECK(MallocExtension::instance() == ours);
}

void LookAtTypes() {
  stage = "types";
  CHECK(dynamic_cast<Derived*>(MallocExtension::instance()) == nullptr);
  const MallocExtension& ours = Extension();
  CHECK(typeid(ours) != typeid(MallocExtension));
  MallocExtension base;
  MallocExtension* const pointer = &base;
  CHECK(typeid(*pointer) == typeid(MallocExtension));
}

struct ThreadLocal {
  ~ThreadLocal() { CallEverything("a destructor of a thread"); }
  int touched = 0;
};
thread_local ThreadLocal thread_local_object;

__attribute__((constructor(101))) void First() { CallEverything("before the constructors"); }
__attribute__((destructor(101))) void Last() { CallEverything("after the destructors"); }

struct Static {
  Static() { CallEverything("a constructor"); }
  ~Static() { CallEverything("a destructor"); }
} static_object;

}  // namespace

int main(int argc, char**) {
  CallEverything("main");
  std::thread([] {
    thread_local_object.touched = 1;
    CallEverything("a thread");
  }).join();
  RegisterAnother();
  ReplaceTheSource();
  if (argc == 1) LookAtTypes();
  InterruptOften();
  const pid_t child = fork();
  if (child == 0) {
    CallEverything("the child of a fork");
    std::exit(0);
  }
  int status = 0;
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  return 0;
}
