// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "system/file_memory.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/statfs.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/bits.h"
#include "base/message.h"
#include "system/auxv.h"
#include "system/random.h"
#include "system/resource_limit.h"
#include "system/system_calls.h"

namespace tcmalloc {
namespace {

// The number of names to try. A name is taken about once in 2^30 times.
constexpr int kNames = 16;
constexpr size_t kSuffix = 7;
constexpr size_t kLongestPath = 4096;

// A dot and six letters.
void AppendSuffix(char* end, uint64_t random) {
  constexpr char kLetters[] = "abcdefghijklmnopqrstuvwxyz012345";
  *end++ = '.';
  for (size_t i = 1; i < kSuffix; ++i, random >>= 5) *end++ = kLetters[random % 32];
  *end = '\0';
}

// Returns the page size of a file system, of which mappings must be multiples.
size_t PageOf(int fd) {
  struct statfs information = {};
  if (system_calls.fstatfs(fd, &information) != 0) return 0;
  const auto page = static_cast<size_t>(information.f_bsize);
  return IsPowerOfTwo(page) ? std::max(page, KernelPageSize()) : KernelPageSize();
}

}  // namespace

int FileMemory::Create() const {
  char path[kLongestPath];
  const size_t length = std::strlen(config_.path);
  if (length + kSuffix >= sizeof(path)) {
    errno = ENAMETOOLONG;
    return -1;
  }
  std::memcpy(path, config_.path, length);
  int fd = -1;
  for (uint64_t name = 0; name < kNames; ++name) {
    AppendSuffix(path + length, RandomSeed(name));
    fd = system_calls.open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0 || (errno != EEXIST && errno != EINTR)) break;
  }
  // A file that cannot be removed still provides memory.
  if (fd >= 0) system_calls.unlink(path);
  return fd;
}

bool FileMemory::Open(const Config& config) {
  config_ = config;
  next_ = config.start;
  exhausted_ = false;
  fd_ = config.device ? system_calls.open(config.path, O_RDWR | O_CLOEXEC, 0) : Create();
  if (fd_ >= 0) page_ = config.device ? KernelPageSize() : PageOf(fd_);
  if (fd_ >= 0 && page_ != 0) return true;
  const int error = errno;
  if (fd_ >= 0) system_calls.close(fd_);
  fd_ = -1;
  Message message;
  message << "no memory from " << config.path << (config.device ? "" : ".*") << " (errno " << error
          << "); taking other memory";
  Warn(message);
  return false;
}

int FileMemory::ReleaseAdvice() const {
  if (config_.device || page_ > KernelPageSize()) return -1;
  return config_.map_private ? MADV_DONTNEED : MADV_REMOVE;
}

bool FileMemory::Prepare(size_t bytes, Backing* backing) {
  if (!usable()) return false;
  const uint64_t end = next_ + bytes;
  if (end > INT64_MAX || end < next_) return false;
  *backing = {.fd = fd_,
              .offset = static_cast<off_t>(next_),
              .flags = config_.map_private && !config_.device ? MAP_PRIVATE : MAP_SHARED,
              .page = page_};
  uint64_t most = config_.limit != 0 ? config_.limit : UINT64_MAX;
  // The kernel ends a program that makes a file larger than the process may.
  if (!config_.device) most = std::min<uint64_t>(most, ResourceLimit(RLIMIT_FSIZE));
  if (end > most) {
    if (most < next_ + page_) exhausted_ = true;
    return false;
  }
  // Grows the file, because a thread that touched a mapping beyond its end would be killed.
  if (!config_.device && system_calls.ftruncate(fd_, static_cast<off_t>(end)) != 0) {
    exhausted_ = true;
    return false;
  }
  return true;
}

// Ranges only grow. Whether Find sees the old or the new bounds, the memory of its caller lies
// between them.
void FileRanges::Add(uintptr_t start, size_t bytes, int advice) {
  const int count = count_.load(std::memory_order_relaxed);
  for (int i = 0; i < count; ++i) {
    Range& range = ranges_[i];
    if (range.advice != advice) continue;
    if (range.end.load(std::memory_order_relaxed) == start) {
      range.end.store(start + bytes, std::memory_order_relaxed);
      return;
    }
    if (range.start.load(std::memory_order_relaxed) == start + bytes) {
      range.start.store(start, std::memory_order_relaxed);
      return;
    }
  }
  ranges_[count].start.store(start, std::memory_order_relaxed);
  ranges_[count].end.store(start + bytes, std::memory_order_relaxed);
  ranges_[count].advice = advice;
  // Release pairs with the acquire in Find and publishes the range.
  count_.store(count + 1, std::memory_order_release);
}

FileRanges::Piece FileRanges::Find(uintptr_t begin, uintptr_t end) const {
  uintptr_t next = end;
  // Acquire pairs with the release in Add.
  const int count = count_.load(std::memory_order_acquire);
  for (int i = 0; i < count; ++i) {
    const uintptr_t range_start = ranges_[i].start.load(std::memory_order_relaxed);
    const uintptr_t range_end = ranges_[i].end.load(std::memory_order_relaxed);
    if (range_start <= begin && begin < range_end) {
      return {std::min(end, range_end), ranges_[i].advice};
    }
    if (range_start > begin) next = std::min(next, range_start);
  }
  return {next, MADV_DONTNEED};
}

}  // namespace tcmalloc
