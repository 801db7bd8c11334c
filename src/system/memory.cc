// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "system/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>

#include "base/bits.h"
#include "base/check.h"
#include "base/message.h"
#include "system/auxv.h"
#include "system/region_name.h"
#include "system/system_calls.h"

namespace tcmalloc {
namespace {

// PIDFD_SELF: names the calling process since Linux 6.14, and nothing before.
constexpr int kOwnProcess = -10000;

// The numbers of all architectures known here; libc lacks the last one before Linux 6.1.
constexpr int kMadvHugepage = 14;
constexpr int kMadvNohugepage = 15;
constexpr int kMadvCollapse = 25;

// An advice for memory that stays resident.
constexpr int kNeverRelease = -1;

constexpr size_t kLargestBlock = size_t{1} << 48;
// The lowest hint. Below it are the program itself, its break, and the targets of truncated
// pointers.
constexpr uintptr_t kLowestHint = uintptr_t{1} << 32;
// A larger block would eat the window; it holds no small objects anyway.
constexpr uintptr_t kHintedShare = 8;
constexpr int kHintAttempts = 6;
constexpr uintptr_t kFirstStride = uintptr_t{64} << 20;
constexpr uintptr_t kStrideGrowth = 4;

constexpr uintptr_t kSbrkFailure = UINTPTR_MAX;

void* MapPages(const Backing& backing, uintptr_t address, size_t bytes, int extra_flags) {
  void* start = system_calls.mmap(reinterpret_cast<void*>(address), bytes, PROT_READ | PROT_WRITE,
                                  backing.flags | extra_flags, backing.fd, backing.offset);
  return start == MAP_FAILED ? nullptr : start;
}

int ToMadvise(HugeAdvice advice) {
  switch (advice) {
    case HugeAdvice::kHugepage:
      return kMadvHugepage;
    case HugeAdvice::kNoHugepage:
      return kMadvNohugepage;
    case HugeAdvice::kCollapse:
      break;
  }
  return kMadvCollapse;
}

uintptr_t ToAddress(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

}  // namespace

void* AllocateMetadata(size_t bytes) {
  size_t rounded = 0;
  if (!CheckedAlignUp(bytes, KernelPageSize(), &rounded)) return nullptr;
  void* start = MapPages({}, 0, rounded, 0);
  if (start != nullptr) NameRegion(start, rounded, kMetadataName);
  return start;
}

void SystemMemory::Configure(const Config& config) {
  SpinLockHolder holder(lock_);
  config_ = config;
  next_hint_ = config.hint_start;
  hint_end_ = config.window_limit;
  disable_release_.store(config.disable_release, std::memory_order_relaxed);
  if (*config.memfs.path != '\0') static_cast<void>(memfs_.Open(config.memfs));
  if (*config.device.path != '\0') static_cast<void>(device_.Open(config.device));
  has_file_.store(memfs_.opened() || device_.opened(), std::memory_order_relaxed);
}

MemoryBlock SystemMemory::Allocate(size_t bytes, size_t alignment) {
  // Acquire pairs with the release in set_provider.
  const ProvideMemory provide = provide_.load(std::memory_order_acquire);
  return provide != nullptr ? AllocateFromProvider(provide, bytes, alignment)
                            : AllocateFromSystem(bytes, alignment);
}

MemoryBlock SystemMemory::AllocateFromProvider(ProvideMemory provide, size_t bytes,
                                               size_t alignment) {
  alignment = std::max(alignment, KernelPageSize());
  MemoryBlock block;
  size_t rounded = 0;
  if (CheckedAlignUp(std::max(bytes, size_t{1}), alignment, &rounded) && rounded <= kLargestBlock) {
    size_t actual = rounded;
    const uintptr_t start = ToAddress(provide(rounded, &actual, alignment));
    SpinLockHolder holder(lock_);
    if (start != 0 && IsAligned(start, alignment) && actual >= rounded) {
      block = AdoptProvided(start, AlignDown(actual, alignment));
    }
    if (block.start == nullptr) ++stats_.failures;
  }
  if (block.start == nullptr) errno = ENOMEM;
  return block;
}

MemoryBlock SystemMemory::AdoptProvided(uintptr_t start, size_t bytes) {
  MemoryBlock block = {.start = reinterpret_cast<void*>(start), .bytes = bytes};
  const uintptr_t newest = ToAddress(newest_.start);
  if (start >= newest && start + bytes <= newest + newest_.bytes) return block;
  if (!files_.HasRoom()) return {};
  files_.Add(start, bytes, kNeverRelease);
  stats_.mmap_bytes += bytes;
  NoteAllocation(block);
  return block;
}

MemoryBlock SystemMemory::AllocateFromSystem(size_t bytes, size_t alignment) {
  alignment = std::max(alignment, KernelPageSize());
  size_t rounded = 0;
  MemoryBlock block;
  SpinLockHolder holder(lock_);
  if (CheckedAlignUp(std::max(bytes, size_t{1}), alignment, &rounded) && rounded <= kLargestBlock) {
    block = AllocateFromFiles(rounded, alignment);
    if (block.start == nullptr && !(config_.memfs_only && memfs_.opened())) {
      block = AllocateAnonymous(rounded, alignment);
    }
  }
  if (block.start == nullptr) {
    ++stats_.failures;
    errno = ENOMEM;
    return {};
  }
  NoteAllocation(block);
  newest_ = block;
  return block;
}

MemoryBlock SystemMemory::AllocateAnonymous(size_t bytes, size_t alignment) {
  MemoryBlock block = {.bytes = bytes, .zeroed = true};
  if (!config_.skip_mmap) block.start = Mmap({}, bytes, alignment);
  if (block.start == nullptr && !config_.skip_sbrk) block.start = Sbrk(bytes, alignment);
  if (block.start != nullptr) NameRegion(block.start, bytes, kHeapName);
  return block;
}

MemoryBlock SystemMemory::AllocateFromFiles(size_t bytes, size_t alignment) {
  if (memfs_.opened()) {
    const MemoryBlock block = AllocateFromFile(memfs_, bytes, alignment);
    if (block.start != nullptr || config_.memfs_only) return block;
    if (config_.abort_without_memfs) {
      Message message;
      message << bytes << " bytes cannot be had from " << config_.memfs.path
              << ".*, and TCMALLOC_MEMFS_ABORT_ON_FAIL is set";
      Crash(message);
    }
  }
  return AllocateFromFile(device_, bytes, alignment);
}

// Skips pages of the file for alignment if the hint does not work; no memory is lost by that.
MemoryBlock SystemMemory::AllocateFromFile(FileMemory& file, size_t bytes, size_t alignment) {
  if (!file.usable()) return {};
  alignment = std::max(alignment, file.page());
  MemoryBlock block = {.zeroed = file.zeroed()};
  Backing backing;
  if (!CheckedAlignUp(bytes, alignment, &block.bytes)) return {};
  const size_t taken = block.bytes + (alignment - file.page());
  if (!files_.HasRoom() || !file.Prepare(taken, &backing)) return {};
  block.start = Mmap(backing, block.bytes, alignment);
  if (block.start == nullptr) {
    file.NoteMapFailure();
    return {};
  }
  file.NoteMapped(taken);
  stats_.file_bytes += block.bytes;
  if (file.ReleaseAdvice() != MADV_DONTNEED) {
    files_.Add(ToAddress(block.start), block.bytes, file.ReleaseAdvice());
  }
  return block;
}

void SystemMemory::NoteAllocation(const MemoryBlock& block) {
  ++stats_.allocations;
  if (ToAddress(block.start) + block.bytes > config_.window_limit) ++stats_.outside_window;
  stats_.peak_bytes = std::max(stats_.peak_bytes, stats_.mmap_bytes + stats_.sbrk_bytes);
}

void* SystemMemory::Mmap(const Backing& backing, size_t bytes, size_t alignment) {
  void* start = nullptr;
  const bool hinted = next_hint_ != 0 && bytes <= MostHintedBytes();
  errno = 0;
  if (hinted) start = MmapAtHint(backing, bytes, alignment);
  const bool refused = start == nullptr && errno == ENOMEM;
  if (start == nullptr) start = MmapAnywhere(backing, bytes, alignment);
  if (start == nullptr) return nullptr;
  // There is memory, but not at the hint: this machine's addresses may end below it.
  if (refused) NextHintRange();
  stats_.mmap_bytes += bytes;
  return start;
}

size_t SystemMemory::MostHintedBytes() const {
  const bool grows = config_.extend_window != nullptr;
  return (grows ? kLargestWindow : config_.window_limit) / kHintedShare;
}

// Only the range above hint_start ends with the window. Keeps errno.
bool SystemMemory::ExtendHints(uintptr_t end) {
  if (config_.extend_window == nullptr || hint_end_ != config_.window_limit) return false;
  const int saved_errno = errno;
  const uintptr_t limit = config_.extend_window(end);
  errno = saved_errno;
  if (limit < end) return false;
  config_.window_limit = limit;
  hint_end_ = limit;
  return true;
}

// Steps over addresses that are taken. The steps grow, so that a few attempts get past anything.
void* SystemMemory::MmapAtHint(const Backing& backing, size_t bytes, size_t alignment) {
  uintptr_t stride = kFirstStride;
  for (int attempt = 0; attempt < kHintAttempts && next_hint_ != 0; ++attempt) {
    const uintptr_t hint = AlignUp(next_hint_, alignment);
    if (hint + bytes > hint_end_) {
      if (ExtendHints(hint + bytes)) continue;
      // Smaller blocks may still fit.
      if (bytes > config_.window_limit / kHintedShare) return nullptr;
      NextHintRange();
      continue;
    }
    void* start = MapPages(backing, hint, bytes, MAP_FIXED_NOREPLACE);
    if (ToAddress(start) == hint) {
      next_hint_ = hint + bytes;
      return start;
    }
    if (start != nullptr) {
      // Kernels before 4.17 do not know the flag and map elsewhere.
      if (IsAligned(ToAddress(start), alignment)) return start;
      Trim(ToAddress(start), bytes);
    } else if (errno != EEXIST) {
      return nullptr;
    }
    next_hint_ = hint + stride;
    stride *= kStrideGrowth;
  }
  return nullptr;
}

// The addresses above hint_start come first, then those below it.
void SystemMemory::NextHintRange() {
  const bool first = hint_end_ == config_.window_limit && config_.hint_start > kLowestHint;
  next_hint_ = first ? kLowestHint : 0;
  hint_end_ = config_.hint_start;
}

void* SystemMemory::MmapAnywhere(const Backing& backing, size_t bytes, size_t alignment) {
  void* start = MapPages(backing, 0, bytes, 0);
  if (start == nullptr || IsAligned(ToAddress(start), alignment)) return start;
  Trim(ToAddress(start), bytes);
  return MmapTrimmed(backing, bytes, alignment);
}

void* SystemMemory::MmapTrimmed(const Backing& backing, size_t bytes, size_t alignment) {
  const size_t page = std::max(backing.page, KernelPageSize());
  const size_t mapped = bytes + alignment - page;
  const uintptr_t start = ToAddress(MapPages(backing, 0, mapped, 0));
  if (start == 0) return nullptr;
  const uintptr_t aligned = AlignUp(start, alignment);
  Trim(start, aligned - start);
  Trim(aligned + bytes, start + mapped - (aligned + bytes));
  return reinterpret_cast<void*>(aligned);
}

// Unmaps pages that were mapped for alignment only. The kernel may refuse if that needs one more
// mapping than the process may have; the bytes then stay mapped, unused.
void SystemMemory::Trim(uintptr_t start, size_t bytes) {
  if (bytes == 0) return;
  if (system_calls.munmap(reinterpret_cast<void*>(start), bytes) != 0) stats_.mmap_bytes += bytes;
}

// Whole pages above the break, wherever the program left it, are new and read as zero.
void* SystemMemory::Sbrk(size_t bytes, size_t alignment) {
  const uintptr_t current = ToAddress(system_calls.sbrk(0));
  if (current == kSbrkFailure) return nullptr;
  const size_t wanted = AlignUp(current, alignment) - current + bytes;
  const uintptr_t start = GrowBreak(wanted);
  if (start == kSbrkFailure) return nullptr;
  // Other code may have moved the break in between.
  const uintptr_t aligned = AlignUp(start, alignment);
  const uintptr_t taken_end = start + wanted;
  if (aligned + bytes > taken_end && GrowBreak(aligned + bytes - taken_end) != taken_end) {
    return nullptr;
  }
  return reinterpret_cast<void*>(aligned);
}

uintptr_t SystemMemory::GrowBreak(size_t bytes) {
  const uintptr_t start = ToAddress(system_calls.sbrk(static_cast<intptr_t>(bytes)));
  if (start == kSbrkFailure) return start;
  stats_.sbrk_bytes += bytes;
  sbrk_start_ = std::min(sbrk_start_, start);
  sbrk_end_ = std::max(sbrk_end_, start + bytes);
  return start;
}

// Only memory that still ends at the break can go back.
bool SystemMemory::ShrinkBreak(uintptr_t start, size_t bytes) {
  if (ToAddress(system_calls.sbrk(0)) != start + bytes) return false;
  if (ToAddress(system_calls.sbrk(-static_cast<intptr_t>(bytes))) == kSbrkFailure) return false;
  stats_.sbrk_bytes -= bytes;
  sbrk_end_ = start;
  return true;
}

bool SystemMemory::Release(void* start, size_t bytes) {
  ReleaseRequest request{start, bytes};
  Release(&request, 1);
  return request.released;
}

// Finds the whole pages of the kernel in a run. Returns false if there are none.
bool SystemMemory::WholePages(const ReleaseRequest& request, iovec* pages) const {
  const size_t page = KernelPageSize();
  const uintptr_t begin = AlignUp(ToAddress(request.start), page);
  const uintptr_t end = AlignDown(ToAddress(request.start) + request.bytes, page);
  if (begin >= end) return false;
  *pages = {reinterpret_cast<void*>(begin), end - begin};
  return true;
}

void SystemMemory::Release(ReleaseRequest* requests, size_t n) {
  TCMALLOC_DCHECK_LE(n, kMostRequests);
  if (disable_release_.load(std::memory_order_relaxed)) return;
  iovec pages[kMostRequests] = {};
  ReleaseRequest* request_of[kMostRequests];
  size_t count = 0;
  for (size_t i = 0; i < n; ++i) {
    if (WholePages(requests[i], &pages[count])) request_of[count++] = &requests[i];
  }
  const size_t together = ReleaseTogether(pages, count);
  for (size_t i = 0; i < count; ++i) {
    request_of[i]->released = i < together || ReleasePages(pages[i]);
  }
}

// Releases runs by one call. Returns how many of them went; the others are unchanged.
size_t SystemMemory::ReleaseTogether(const iovec* pages, size_t n) {
  if (n < 2 || !files_.empty() || no_process_madvise_.load(std::memory_order_relaxed)) return 0;
  ssize_t bytes = system_calls.process_madvise(kOwnProcess, pages, n, MADV_DONTNEED, 0);
  if (bytes < 0) {
    // Any other error concerns one run, whose own call will find it.
    const bool never = errno == ENOSYS || errno == EPERM || errno == EBADF;
    if (never) no_process_madvise_.store(true, std::memory_order_relaxed);
    return 0;
  }
  size_t done = 0;
  for (; done < n && static_cast<size_t>(bytes) >= pages[done].iov_len; ++done) {
    bytes -= static_cast<ssize_t>(pages[done].iov_len);
    NoteRelease(pages[done]);
  }
  return done;
}

// Memory of files needs another advice than anonymous memory.
bool SystemMemory::ReleasePages(const iovec& pages) {
  const uintptr_t end = ToAddress(pages.iov_base) + pages.iov_len;
  for (uintptr_t piece = ToAddress(pages.iov_base); piece < end;) {
    const FileRanges::Piece found = files_.Find(piece, end);
    if (found.advice < 0 || system_calls.madvise(reinterpret_cast<void*>(piece), found.end - piece,
                                                 found.advice) != 0) {
      release_failures_.fetch_add(1, std::memory_order_relaxed);
      return false;
    }
    piece = found.end;
  }
  NoteRelease(pages);
  return true;
}

void SystemMemory::NoteRelease(const iovec& pages) {
  releases_.fetch_add(1, std::memory_order_relaxed);
  released_bytes_.fetch_add(pages.iov_len, std::memory_order_relaxed);
}

bool SystemMemory::AdviseHuge(void* start, size_t bytes, HugeAdvice advice) {
  if (!files_.empty()) return false;
  return system_calls.madvise(start, bytes, ToMadvise(advice)) == 0;
}

bool SystemMemory::Unmap(void* start, size_t bytes) {
  const uintptr_t begin = ToAddress(start);
  SpinLockHolder holder(lock_);
  if (begin >= sbrk_start_ && begin < sbrk_end_) return ShrinkBreak(begin, bytes);
  // Its addresses remain those of a file.
  if (files_.Find(begin, begin + bytes).advice != MADV_DONTNEED) return false;
  if (system_calls.munmap(start, bytes) != 0) return false;
  stats_.mmap_bytes -= bytes;
  if (begin + bytes == next_hint_) next_hint_ = begin;
  return true;
}

SystemMemoryStats SystemMemory::stats() {
  SpinLockHolder holder(lock_);
  SystemMemoryStats stats = stats_;
  stats.releases = releases_.load(std::memory_order_relaxed);
  stats.release_failures = release_failures_.load(std::memory_order_relaxed);
  stats.released_bytes = released_bytes_.load(std::memory_order_relaxed);
  return stats;
}

}  // namespace tcmalloc
