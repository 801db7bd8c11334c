// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Memory from a file instead of anonymous memory.

#ifndef TCMALLOC_SYSTEM_FILE_MEMORY_H_
#define TCMALLOC_SYSTEM_FILE_MEMORY_H_

#include <sys/mman.h>
#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tcmalloc {

// The arguments of mmap that name the source of the bytes. The default is no file.
struct Backing {
  int fd = -1;
  off_t offset = 0;
  int flags = MAP_PRIVATE | MAP_ANONYMOUS;
  size_t page = 0;  // bytes that mappings of it come in; 0: those of the kernel
};

// The rest of a file, taken from the front. The file is one that is made in a hugetlbfs or tmpfs
// and unlinked at once, or a device of physical memory. It grows as it is taken; untouched parts
// have no memory. Not thread safe. Allocates nothing; may change errno.
class FileMemory {
 public:
  struct Config {
    const char* path = "";  // of the device, or the beginning of the new file's; must outlive this
    bool device = false;
    uint64_t start = 0;  // offset in bytes
    uint64_t limit = 0;  // offset in bytes that nothing is taken beyond; 0: none
    bool map_private = false;
    bool ignore_map_failures = false;
  };

  constexpr FileMemory() = default;
  FileMemory(const FileMemory&) = delete;
  FileMemory& operator=(const FileMemory&) = delete;

  // Opens the file. If that fails, returns false and prints one line to stderr.
  [[nodiscard]] bool Open(const Config& config);
  bool usable() const { return fd_ >= 0 && !exhausted_; }
  bool opened() const { return fd_ >= 0; }

  size_t page() const { return page_; }
  // Returns true if memory reads as zero when it is first mapped. Devices may hold anything.
  bool zeroed() const { return !config_.device; }
  // Returns the advice by which the kernel takes pages back such that they read as zero, or -1 if
  // it cannot. Pages of hugetlbfs are larger than those of the heap, so they stay.
  int ReleaseAdvice() const;

  // Makes sure that the next `bytes` of the file exist, a multiple of page(). The caller then maps
  // them and reports that, or reports a failure. Returns false if the file cannot provide them.
  [[nodiscard]] bool Prepare(size_t bytes, Backing* backing);
  void NoteMapped(size_t bytes) { next_ += bytes; }
  // Ends the use of the file, unless such failures are to be ignored.
  void NoteMapFailure() { exhausted_ = !config_.ignore_map_failures; }

 private:
  int Create() const;

  Config config_;
  int fd_ = -1;
  size_t page_ = 0;
  uint64_t next_ = 0;  // offset
  bool exhausted_ = false;
};

// The addresses of mapped files that are released differently from other memory. Changes need a
// lock of the caller's. Find takes none, and knows every range in which its caller has memory.
class FileRanges {
 public:
  constexpr FileRanges() = default;
  FileRanges(const FileRanges&) = delete;
  FileRanges& operator=(const FileRanges&) = delete;

  bool empty() const { return count_.load(std::memory_order_relaxed) == 0; }
  // True if Add will find room.
  bool HasRoom() const { return count_.load(std::memory_order_relaxed) < kMost; }
  void Add(uintptr_t start, size_t bytes, int advice);

  struct Piece {
    uintptr_t end;
    int advice;
  };
  // Returns the piece that begins at `begin`, up to its end but not beyond `end`.
  Piece Find(uintptr_t begin, uintptr_t end) const;

 private:
  // Hints place the blocks side by side, so that they form a range or two.
  static constexpr int kMost = 64;

  struct Range {
    std::atomic<uintptr_t> start{0};
    std::atomic<uintptr_t> end{0};
    int advice = 0;
  };

  std::atomic<int> count_{0};
  Range ranges_[kMost];
};

}  // namespace tcmalloc

#endif  // TCMALLOC_SYSTEM_FILE_MEMORY_H_
