// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A library to preload before an allocator: counts how many pages the blocks lie in that a thread
// allocates one after the other. At the end of each process it appends a JSON object in one line to
// the file that the environment variable NEIGHBOURS_FILE names.
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

namespace tcmalloc::bench {
namespace {

constexpr size_t kNeighbours = 64;
constexpr size_t kPageBytes = 4096;
// Larger blocks lie in pages of their own under every allocator.
constexpr size_t kLargest = 1024;

struct Totals {
  std::atomic<uint64_t> allocations{0};
  std::atomic<uint64_t> reallocations{0};
  std::atomic<uint64_t> groups{0};
  std::atomic<uint64_t> pages{0};
  std::atomic<uint64_t> bytes{0};
};

constinit Totals totals;

void Add(std::atomic<uint64_t>* total, uint64_t value) {
  total->fetch_add(value, std::memory_order_relaxed);
}

// The running thread's last blocks. A group that the thread does not complete is not counted.
struct Group {
  size_t count;
  size_t bytes;
  uintptr_t pages[kNeighbours];
};

constinit thread_local Group group{};
// Set while a function of this library calls the allocator, whose operator new may be libstdc++'s
// and come back as malloc.
constinit thread_local bool inside = false;

size_t DistinctPages() {
  size_t distinct = 0;
  for (size_t i = 0; i < kNeighbours; ++i) {
    bool seen = false;
    for (size_t j = 0; j < i && !seen; ++j) seen = group.pages[j] == group.pages[i];
    if (!seen) ++distinct;
  }
  return distinct;
}

void Note(const void* block, size_t size) {
  Add(&totals.allocations, 1);
  if (size > kLargest) return;
  group.pages[group.count++] = reinterpret_cast<uintptr_t>(block) / kPageBytes;
  group.bytes += size;
  if (group.count < kNeighbours) return;
  Add(&totals.groups, 1);
  Add(&totals.pages, DistinctPages());
  Add(&totals.bytes, group.bytes);
  group.count = 0;
  group.bytes = 0;
}

class Outermost {
 public:
  Outermost() : outermost_(!inside) { inside = true; }
  ~Outermost() {
    if (outermost_) inside = false;
  }
  void* Note(void* block, size_t size) const {
    if (outermost_ && block != nullptr) bench::Note(block, size);
    return block;
  }

 private:
  bool outermost_;
};

// dlsym may allocate before it has found the allocator. That comes from here and is never reused.
class EarlyMemory {
 public:
  void* Allocate(size_t size) {
    const size_t rounded = (size + kAlignment - 1) / kAlignment * kAlignment;
    if (rounded > sizeof(bytes_) - used_) return nullptr;
    void* block = bytes_ + used_;
    used_ += rounded;
    return block;
  }
  bool Contains(const void* block) const {
    const auto address = reinterpret_cast<uintptr_t>(block);
    const auto begin = reinterpret_cast<uintptr_t>(bytes_);
    return address >= begin && address < begin + sizeof(bytes_);
  }

 private:
  static constexpr size_t kAlignment = alignof(max_align_t);

  alignas(max_align_t) char bytes_[4096] = {};
  size_t used_ = 0;
};

constinit EarlyMemory early_memory;

// A function of the allocator, or of libc, that this library stands in front of.
template <typename Function>
class Next {
 public:
  explicit constexpr Next(const char* name) : name_(name) {}

  // Null while dlsym itself calls it.
  Function* Find() {
    if (function_ == nullptr && !searching_) {
      searching_ = true;
      function_ = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name_));
      searching_ = false;
    }
    return function_;
  }

 private:
  const char* name_;
  Function* function_ = nullptr;
  bool searching_ = false;
};

constinit Next<void*(size_t)> next_malloc("malloc");
constinit Next<void*(size_t, size_t)> next_calloc("calloc");
constinit Next<void*(void*, size_t)> next_realloc("realloc");
constinit Next<void(void*)> next_free("free");
constinit Next<void*(size_t, size_t)> next_memalign("memalign");
constinit Next<void*(size_t, size_t)> next_aligned_alloc("aligned_alloc");
constinit Next<int(void**, size_t, size_t)> next_posix_memalign("posix_memalign");
constinit Next<void*(size_t)> next_new("_Znwm");
constinit Next<void*(size_t)> next_new_array("_Znam");
constinit Next<void*(size_t, std::align_val_t)> next_new_aligned("_ZnwmSt11align_val_t");
constinit Next<void*(size_t, const std::nothrow_t&)> next_new_nothrow("_ZnwmRKSt9nothrow_t");

void Clear() {
  for (std::atomic<uint64_t>* total :
       {&totals.allocations, &totals.reallocations, &totals.groups, &totals.pages, &totals.bytes}) {
    total->store(0, std::memory_order_relaxed);
  }
}

// A second thread must find all functions found.
__attribute__((constructor)) void Start() {
  next_malloc.Find();
  next_calloc.Find();
  next_realloc.Find();
  next_free.Find();
  next_memalign.Find();
  next_aligned_alloc.Find();
  next_posix_memalign.Find();
  next_new.Find();
  next_new_array.Find();
  next_new_aligned.Find();
  next_new_nothrow.Find();
  // The parent reports what it has done so far.
  pthread_atfork(nullptr, nullptr, Clear);
}

unsigned long long Read(const std::atomic<uint64_t>& total) {
  return total.load(std::memory_order_relaxed);
}

__attribute__((destructor)) void Finish() {
  const char* path = getenv("NEIGHBOURS_FILE");
  if (path == nullptr) return;
  char line[256];
  const int length =
      snprintf(line, sizeof(line),
               "{\"allocations\":%llu,\"reallocations\":%llu,\"groups\":%llu,\"pages\":%llu,"
               "\"bytes\":%llu}\n",
               Read(totals.allocations), Read(totals.reallocations), Read(totals.groups),
               Read(totals.pages), Read(totals.bytes));
  const int file = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
  if (file < 0) return;
  // Who reads the file notices that a line is missing.
  [[maybe_unused]] const ssize_t written = write(file, line, static_cast<size_t>(length));
  close(file);
}

}  // namespace
}  // namespace tcmalloc::bench

using tcmalloc::bench::Outermost;

extern "C" {

void* malloc(size_t size) noexcept {
  auto* function = tcmalloc::bench::next_malloc.Find();
  if (function == nullptr) return tcmalloc::bench::early_memory.Allocate(size);
  const Outermost call;
  return call.Note(function(size), size);
}

void* calloc(size_t count, size_t size) noexcept {
  auto* function = tcmalloc::bench::next_calloc.Find();
  if (function == nullptr) return tcmalloc::bench::early_memory.Allocate(count * size);
  const Outermost call;
  return call.Note(function(count, size), count * size);
}

// A block that stays where it is has been resized only; one that moves is a new neighbour as well.
void* realloc(void* old_block, size_t size) noexcept {
  if (old_block == nullptr) return malloc(size);
  if (tcmalloc::bench::early_memory.Contains(old_block)) {
    void* block = malloc(size);
    if (block != nullptr) memcpy(block, old_block, size < 64 ? size : 64);
    return block;
  }
  const Outermost call;
  void* block = tcmalloc::bench::next_realloc.Find()(old_block, size);
  tcmalloc::bench::Add(&tcmalloc::bench::totals.reallocations, 1);
  return block == old_block ? block : call.Note(block, size);
}

void free(void* block) noexcept {
  if (!tcmalloc::bench::early_memory.Contains(block)) tcmalloc::bench::next_free.Find()(block);
}

void* memalign(size_t alignment, size_t size) noexcept {
  const Outermost call;
  return call.Note(tcmalloc::bench::next_memalign.Find()(alignment, size), size);
}

void* aligned_alloc(size_t alignment, size_t size) noexcept {
  const Outermost call;
  return call.Note(tcmalloc::bench::next_aligned_alloc.Find()(alignment, size), size);
}

int posix_memalign(void** result, size_t alignment, size_t size) noexcept {
  const Outermost call;
  const int status = tcmalloc::bench::next_posix_memalign.Find()(result, alignment, size);
  if (status == 0) call.Note(*result, size);
  return status;
}

}  // extern "C"

void* operator new(size_t size) {
  const Outermost call;
  return call.Note(tcmalloc::bench::next_new.Find()(size), size);
}

void* operator new[](size_t size) {
  const Outermost call;
  return call.Note(tcmalloc::bench::next_new_array.Find()(size), size);
}

void* operator new(size_t size, std::align_val_t alignment) {
  const Outermost call;
  return call.Note(tcmalloc::bench::next_new_aligned.Find()(size, alignment), size);
}

void* operator new(size_t size, const std::nothrow_t& tag) noexcept {
  const Outermost call;
  return call.Note(tcmalloc::bench::next_new_nothrow.Find()(size, tag), size);
}
