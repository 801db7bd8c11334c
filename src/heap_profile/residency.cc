// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "heap_profile/residency.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "system/auxv.h"
#include "system/system_calls.h"

namespace tcmalloc {
namespace {

// Bits of the kernel's word for a page.
constexpr uint64_t kPresent = uint64_t{1} << 63;
constexpr uint64_t kSwapped = uint64_t{1} << 62;

// No part of the table of system calls, which libraries without profiles have as well.
ssize_t ReadAt(int fd, void* buffer, size_t bytes, uint64_t offset) {
  return ::syscall(SYS_pread64, fd, buffer, bytes, offset);
}
bool IsInCore(uintptr_t page, size_t page_bytes) {
  unsigned char core = 0;
  return ::syscall(SYS_mincore, page * page_bytes, page_bytes, &core) == 0 && (core & 1) != 0;
}

}  // namespace

Residency::Residency(const char* pagemap)
    : page_bytes_(KernelPageSize()),
      saved_errno_(errno),
      fd_(system_calls.open(pagemap, O_RDONLY | O_CLOEXEC, 0)) {}

Residency::~Residency() {
  if (fd_ >= 0) system_calls.close(fd_);
  errno = saved_errno_;
}

// Reads the window that begins with a page.
void Residency::Read(uintptr_t first_page) {
  window_ = first_page;
  std::memset(pages_, 0, sizeof(pages_));
  const uint64_t offset = uint64_t{first_page} * sizeof(pages_[0]);
  if (fd_ >= 0 && ReadAt(fd_, pages_, sizeof(pages_), offset) > 0) return;
  ReadByMincore(first_page);
}

void Residency::ReadByMincore(uintptr_t first_page) {
  for (size_t i = 0; i < kWindowPages; ++i) {
    pages_[i] = IsInCore(first_page + i, page_bytes_) ? kPresent : 0;
  }
}

PageBytes Residency::Of(uintptr_t start, uint64_t bytes) {
  const uint64_t window_bytes = kWindowPages * page_bytes_;
  const uint64_t windows = bytes / window_bytes;
  if (windows <= kMostWindows) return Count(start, start + bytes);
  const uint64_t step = (windows + kMostWindows - 1) / kMostWindows;
  PageBytes result;
  for (uint64_t i = 0; i < windows; i += step) {
    // Stands for as many windows as there are before the next one.
    const uint64_t weight = std::min(step, windows - i);
    const uintptr_t begin = start + i * window_bytes;
    const PageBytes counted = Count(begin, begin + window_bytes);
    result.resident += counted.resident * weight;
    result.swapped += counted.swapped * weight;
  }
  return result;
}

PageBytes Residency::Count(uintptr_t start, uintptr_t end) {
  PageBytes result;
  while (start < end) {
    const uintptr_t page = start / page_bytes_;
    const uintptr_t window = page / kWindowPages * kWindowPages;
    if (window != window_) Read(window);
    const uintptr_t next = std::min<uintptr_t>((page + 1) * page_bytes_, end);
    const uint64_t word = pages_[page - window];
    if ((word & kPresent) != 0) result.resident += next - start;
    if ((word & kSwapped) != 0) result.swapped += next - start;
    start = next;
  }
  return result;
}

Scratch<PageBytes> PagesOf(std::span<const ProfileRow> rows) {
  if (rows.empty()) return {};
  Scratch<PageBytes> pages(rows.size());
  const Scratch<uint32_t> order(rows.size());
  if (pages.data() == nullptr || order.data() == nullptr) return {};
  for (size_t i = 0; i < rows.size(); ++i) order[i] = static_cast<uint32_t>(i);
  std::sort(order.data(), order.data() + rows.size(), [rows](uint32_t a, uint32_t b) {
    return rows[a].sample.address < rows[b].sample.address;
  });
  Residency residency;
  for (size_t i = 0; i < rows.size(); ++i) {
    const Sample& sample = rows[order[i]].sample;
    pages[order[i]] = residency.Of(sample.address, sample.allocated);
  }
  return pages;
}

}  // namespace tcmalloc
