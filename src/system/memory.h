// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Memory from the operating system.

#ifndef TCMALLOC_SYSTEM_MEMORY_H_
#define TCMALLOC_SYSTEM_MEMORY_H_

#include <sys/uio.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/spin_lock.h"
#include "base/thread_annotations.h"
#include "system/address_window.h"
#include "system/clock.h"
#include "system/file_memory.h"
#include "system/transparent_hugepages.h"

namespace tcmalloc {

struct MemoryBlock {
  void* start = nullptr;  // null on failure
  size_t bytes = 0;
  bool zeroed = false;
};

// One of several runs that are to be released at once.
struct ReleaseRequest {
  void* start = nullptr;
  size_t bytes = 0;
  bool released = false;
};

struct SystemMemoryStats {
  uint64_t mmap_bytes = 0;      // mapped now
  uint64_t sbrk_bytes = 0;      // taken from the program break
  uint64_t file_bytes = 0;      // of mmap_bytes, ever from files
  uint64_t peak_bytes = 0;      // the most that both together ever were
  uint64_t allocations = 0;     // calls of Allocate that succeeded
  uint64_t failures = 0;        // calls of Allocate that failed
  uint64_t outside_window = 0;  // allocations that are not wholly below the window's limit
  uint64_t releases = 0;        // calls of Release that succeeded
  uint64_t release_failures = 0;
  uint64_t released_bytes = 0;  // given back by all releases together
};

// Advice to the kernel about hugepages.
enum class HugeAdvice : uint8_t {
  kHugepage,    // back by hugepages what is touched from now on
  kNoHugepage,  // never do so
  kCollapse,    // move what is resident into hugepages now
};

// A source of memory that the program provides. Returns at least `bytes` bytes, aligned to
// `alignment`, and sets *actual to their number; or null. It is called without SystemMemory's lock
// and may call AllocateFromSystem.
using ProvideMemory = void* (*)(size_t bytes, size_t* actual, size_t alignment);

// The source of the page heap's memory. Thread safe; constant-initialised and trivially
// destructible. No function allocates; each may change errno. None aborts unless the configuration
// demands it.
//
// Sources are asked in this order if there is no provider: a memory file system, a device of
// physical memory, mmap, sbrk.
//
// Blocks are requested side by side, upwards from hint_start, so that the heap is contiguous and
// below window_limit, which is raised as they need it. Neither is promised: a block may lie
// anywhere.
class SystemMemory {
 public:
  // Moves the window's limit up to `end` or beyond and returns it; 0 if it stays where it is.
  // Called under SystemMemory's lock.
  using ExtendWindow = uintptr_t (*)(uintptr_t end);

  struct Config {
    bool skip_mmap = false;
    bool skip_sbrk = false;
    bool disable_release = false;
    bool abort_without_memfs = false;  // where memory must come from there and does not
    bool memfs_only = false;
    FileMemory::Config memfs = {};         // without a path: none
    FileMemory::Config device = {};        // likewise
    uintptr_t window_limit = 0;            // exclusive end of the addresses to ask for
    ExtendWindow extend_window = nullptr;  // without it, the limit is final
    uintptr_t hint_start = 0;  // first address to ask for; 0 leaves every choice to the kernel
  };

  constexpr SystemMemory() = default;
  SystemMemory(const SystemMemory&) = delete;
  SystemMemory& operator=(const SystemMemory&) = delete;

  // Call before the first allocation.
  void Configure(const Config& config) TCMALLOC_EXCLUDES(lock_);

  // Allocates at least `bytes` bytes that read as zero and may be written, a multiple of
  // `alignment` (a power of two) and of the kernel's page in address and size. Memory of a device
  // or a provider may hold anything, and is not `zeroed`. Sets errno to ENOMEM on failure.
  MemoryBlock Allocate(size_t bytes, size_t alignment) TCMALLOC_EXCLUDES(lock_);
  // Allocates without the provider, if there is one.
  MemoryBlock AllocateFromSystem(size_t bytes, size_t alignment) TCMALLOC_EXCLUDES(lock_);

  // Lets Allocate take memory only from `provide`; null undoes that. Such memory stays, because its
  // release is unknown, unless it is part of a block that the provider took from AllocateFromSystem
  // for the same request.
  void set_provider(ProvideMemory provide) {
    // Release pairs with the acquire in Allocate and publishes the provider's data.
    provide_.store(provide, std::memory_order_release);
  }

  // Gives the physical memory of the whole kernel pages inside [start, start + bytes) back; they
  // read as zero afterwards. Returns false, with nothing changed, if there is no whole page, if
  // release is disabled, or if the kernel refuses. If it refuses a part, others may read as zero.
  // Takes no lock.
  bool Release(void* start, size_t bytes);

  // Releases each of n <= kMostRequests runs, by one system call if the kernel can. Notes in each
  // request whether it was released.
  void Release(ReleaseRequest* requests, size_t n);
  static constexpr size_t kMostRequests = 16;

  // Advises the kernel about the whole hugepages [start, start + bytes). Returns false if it
  // refuses or does not know the advice, or if memory comes from files. Takes no lock.
  bool AdviseHuge(void* start, size_t bytes, HugeAdvice advice);

  // Writes a zero to a page that reads as zero, or that nobody reads.
  static void Touch(void* page) { *static_cast<volatile char*>(page) = 0; }
  // Works as MonotonicNanoseconds.
  static int64_t Now() { return MonotonicNanoseconds(); }

  // Works as ReadTransparentHugepages.
  static TransparentHugepages ReadHugepageSetting() { return ReadTransparentHugepages(); }

  // Undoes an allocation of which nothing was used. Returns false, with nothing changed, if the
  // kernel refuses, for memory from sbrk upon which others have built, and for shared memory of a
  // file.
  bool Unmap(void* start, size_t bytes) TCMALLOC_EXCLUDES(lock_);

  // Returns true if the address space of the process is limited. May change errno.
  static bool IsLimited() { return AddressSpaceLimit() != SIZE_MAX; }
  // Returns true if memory comes from a file or a provider, which may have little, so that even
  // what nobody touches is missing elsewhere.
  bool IsFinite() const { return HasFile() || provide_.load(std::memory_order_relaxed) != nullptr; }

  // Returns true if memory may come from a file.
  bool HasFile() const { return has_file_.load(std::memory_order_relaxed); }

  SystemMemoryStats stats() TCMALLOC_EXCLUDES(lock_);

 private:
  MemoryBlock AllocateFromProvider(ProvideMemory provide, size_t bytes, size_t alignment)
      TCMALLOC_EXCLUDES(lock_);
  MemoryBlock AdoptProvided(uintptr_t start, size_t bytes) TCMALLOC_REQUIRES(lock_);
  MemoryBlock AllocateFromFile(FileMemory& file, size_t bytes, size_t alignment)
      TCMALLOC_REQUIRES(lock_);
  MemoryBlock AllocateFromFiles(size_t bytes, size_t alignment) TCMALLOC_REQUIRES(lock_);
  MemoryBlock AllocateAnonymous(size_t bytes, size_t alignment) TCMALLOC_REQUIRES(lock_);
  void* Mmap(const Backing& backing, size_t bytes, size_t alignment) TCMALLOC_REQUIRES(lock_);
  void* MmapAtHint(const Backing& backing, size_t bytes, size_t alignment) TCMALLOC_REQUIRES(lock_);
  void* MmapAnywhere(const Backing& backing, size_t bytes, size_t alignment)
      TCMALLOC_REQUIRES(lock_);
  void* MmapTrimmed(const Backing& backing, size_t bytes, size_t alignment)
      TCMALLOC_REQUIRES(lock_);
  void Trim(uintptr_t start, size_t bytes) TCMALLOC_REQUIRES(lock_);
  bool WholePages(const ReleaseRequest& request, iovec* pages) const;
  size_t ReleaseTogether(const iovec* pages, size_t n);
  bool ReleasePages(const iovec& pages);
  void NoteRelease(const iovec& pages);
  size_t MostHintedBytes() const TCMALLOC_REQUIRES(lock_);
  bool ExtendHints(uintptr_t end) TCMALLOC_REQUIRES(lock_);
  void NextHintRange() TCMALLOC_REQUIRES(lock_);
  void* Sbrk(size_t bytes, size_t alignment) TCMALLOC_REQUIRES(lock_);
  uintptr_t GrowBreak(size_t bytes) TCMALLOC_REQUIRES(lock_);
  bool ShrinkBreak(uintptr_t start, size_t bytes) TCMALLOC_REQUIRES(lock_);
  void NoteAllocation(const MemoryBlock& block) TCMALLOC_REQUIRES(lock_);

  SpinLock lock_{LockRank::kSystem};
  Config config_ TCMALLOC_GUARDED_BY(lock_);
  // Hints go up from next_hint_ to hint_end_; next_hint_ is 0 once there are no more.
  uintptr_t next_hint_ TCMALLOC_GUARDED_BY(lock_) = 0;
  uintptr_t hint_end_ TCMALLOC_GUARDED_BY(lock_) = 0;
  // All memory from sbrk lies in [sbrk_start_, sbrk_end_).
  uintptr_t sbrk_start_ TCMALLOC_GUARDED_BY(lock_) = UINTPTR_MAX;
  uintptr_t sbrk_end_ TCMALLOC_GUARDED_BY(lock_) = 0;
  SystemMemoryStats stats_ TCMALLOC_GUARDED_BY(lock_);
  MemoryBlock newest_ TCMALLOC_GUARDED_BY(lock_);  // of AllocateFromSystem

  FileMemory memfs_ TCMALLOC_GUARDED_BY(lock_);
  FileMemory device_ TCMALLOC_GUARDED_BY(lock_);
  FileRanges files_;

  std::atomic<ProvideMemory> provide_{nullptr};
  std::atomic<bool> has_file_{false};

  // Release is called with and without the page heap's lock.
  std::atomic<bool> disable_release_{false};
  std::atomic<bool> no_process_madvise_{false};
  std::atomic<uint64_t> releases_{0};
  std::atomic<uint64_t> release_failures_{0};
  std::atomic<uint64_t> released_bytes_{0};
};

// Returns zeroed memory for the allocator's own records, aligned to the kernel's page, or null. It
// is never given back.
void* AllocateMetadata(size_t bytes);

}  // namespace tcmalloc

#endif  // TCMALLOC_SYSTEM_MEMORY_H_
