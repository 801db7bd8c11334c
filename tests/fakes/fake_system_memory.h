// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Memory of the system, for tests that want to see, limit and break what is asked of it.

#ifndef TCMALLOC_TESTS_FAKES_FAKE_SYSTEM_MEMORY_H_
#define TCMALLOC_TESTS_FAKES_FAKE_SYSTEM_MEMORY_H_

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "base/bits.h"
#include "system/memory.h"
#include "system/transparent_hugepages.h"

namespace tcmalloc::testing {

// Hands out real memory, from the bottom of one reservation upwards: blocks touch unless a gap is
// set. A call fails where the predicate for its kind says so; predicates and hooks run outside the
// fake's own lock. Thread safe, except that settings are made while nobody else calls.
class FakeSystemMemory {
 public:
  struct Block {
    char* start;
    size_t bytes;
    friend bool operator==(const Block&, const Block&) = default;
  };

  struct Advised {
    Block block;
    HugeAdvice advice;
  };

  // Nothing of `reserved_bytes` is touched before it is used.
  explicit FakeSystemMemory(size_t reserved_bytes, size_t alignment = size_t{1} << 21)
      : mapped_bytes_(reserved_bytes + alignment) {
    mapping_ = ::mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping_ == MAP_FAILED) return;
    next_ = AlignUp(reinterpret_cast<uintptr_t>(mapping_), alignment);
    end_ = next_ + reserved_bytes;
    begin_ = next_;
  }
  ~FakeSystemMemory() {
    if (mapping_ != MAP_FAILED) ::munmap(mapping_, mapped_bytes_);
  }
  FakeSystemMemory(const FakeSystemMemory&) = delete;
  FakeSystemMemory& operator=(const FakeSystemMemory&) = delete;

  // Settings.
  std::function<bool()> fail_allocate;           // called for each Allocate
  std::function<bool()> fail_release;            // called for each Release
  std::function<void(const Block&)> on_release;  // before the memory goes
  std::function<bool(HugeAdvice)> fail_advise;   // called for each AdviseHuge
  std::function<void(HugeAdvice)> on_advise;     // likewise, before it
  size_t gap = 0;                                // bytes left out after each block
  bool downwards = false;                        // each block ends where the last one begins
  bool zeroed = true;                            // what Allocate says of its blocks
  bool limited = false;                          // what IsLimited says
  bool finite = false;                           // what IsFinite says
  std::function<void(void*)> on_touch;           // called for each Touch
  int64_t now = 1;                               // what Now says
  TransparentHugepages hugepages;                // what ReadHugepageSetting says

  MemoryBlock Allocate(size_t bytes, size_t alignment) {
    if (fail_allocate && fail_allocate()) return {};
    std::lock_guard<std::mutex> guard(mutex_);
    const uintptr_t start = AlignUp(next_, alignment);
    if (start > end_ || bytes > end_ - start) return {};
    if (downwards) return Note(end_ = AlignDown(end_ - bytes, alignment), bytes);
    next_ = start + bytes + gap;
    return Note(start, bytes);
  }

  bool IsLimited() const { return limited; }
  bool IsFinite() const { return finite; }
  TransparentHugepages ReadHugepageSetting() const { return hugepages; }

  bool Release(void* start, size_t bytes) {
    const Block block{static_cast<char*>(start), bytes};
    if (on_release) on_release(block);
    if (fail_release && fail_release()) return false;
    ::madvise(start, bytes, MADV_DONTNEED);
    std::lock_guard<std::mutex> guard(mutex_);
    released_.push_back(block);
    return true;
  }

  void Release(ReleaseRequest* requests, size_t n) {
    EXPECT_GT(n, 0u) << "a call without a request";
    for (size_t i = 0; i < n; ++i) {
      requests[i].released = Release(requests[i].start, requests[i].bytes);
    }
  }
  static constexpr size_t kMostRequests = SystemMemory::kMostRequests;

  bool AdviseHuge(void* start, size_t bytes, HugeAdvice advice) {
    if (on_advise) on_advise(advice);
    if (fail_advise && fail_advise(advice)) return false;
    std::lock_guard<std::mutex> guard(mutex_);
    advised_.push_back({{static_cast<char*>(start), bytes}, advice});
    return true;
  }

  void Touch(void* page) const {
    if (on_touch) on_touch(page);
  }
  int64_t Now() const { return now; }

  bool Unmap(void* start, size_t bytes) {
    std::lock_guard<std::mutex> guard(mutex_);
    unmapped_.push_back({static_cast<char*>(start), bytes});
    return true;
  }

  // Records, in order of the calls that succeeded.
  std::vector<Block> allocated() const { return Copy(allocated_); }
  std::vector<Block> released() const { return Copy(released_); }
  std::vector<Block> unmapped() const { return Copy(unmapped_); }
  std::vector<Advised> advised() const { return Copy(advised_); }

  char* begin() const { return reinterpret_cast<char*>(begin_); }

 private:
  MemoryBlock Note(uintptr_t start, size_t bytes) {
    allocated_.push_back({reinterpret_cast<char*>(start), bytes});
    return {reinterpret_cast<void*>(start), bytes, zeroed};
  }

  template <typename Record>
  std::vector<Record> Copy(const std::vector<Record>& records) const {
    std::lock_guard<std::mutex> guard(mutex_);
    return records;
  }

  size_t mapped_bytes_;
  void* mapping_;
  uintptr_t begin_ = 0;
  uintptr_t end_ = 0;
  mutable std::mutex mutex_;
  uintptr_t next_ = 0;
  std::vector<Block> allocated_;
  std::vector<Block> released_;
  std::vector<Block> unmapped_;
  std::vector<Advised> advised_;
};

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_FAKES_FAKE_SYSTEM_MEMORY_H_
