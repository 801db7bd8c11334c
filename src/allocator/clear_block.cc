// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "allocator/clear_block.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/attributes.h"
#include "heap/heap.h"
#include "system/auxv.h"
#include "system/memory.h"
#include "system/system_calls.h"

namespace tcmalloc {
namespace {

// The kernel is asked about a hugepage at once.
constexpr size_t kPiece = size_t{2} << 20;
// Shorter blocks are written before the kernel has answered.
constexpr size_t kShortest = 2 * kPiece;
constexpr size_t kSmallestKernelPage = 4096;
// A piece is given back if at most one in so many of its pages is resident. Those of others would
// soon come back, each by a fault that costs more than the zeroes.
constexpr size_t kShareOfFew = 8;

// Returns false where the kernel does not tell. Pages in swap count as missing.
TCMALLOC_ALWAYS_INLINE bool HasFewPages(char* piece) {
  unsigned char in_core[kPiece / kSmallestKernelPage];
  if (system_calls.mincore(piece, kPiece, in_core) != 0) return false;
  const size_t pages = kPiece / KernelPageSize();
  const auto resident =
      std::count_if(in_core, in_core + pages, [](unsigned char page) { return (page & 1) != 0; });
  return static_cast<size_t>(resident) * kShareOfFew <= pages;
}

TCMALLOC_ALWAYS_INLINE bool TryRelease(char* piece) {
  ReleaseRequest request{piece, kPiece};
  heap.memory().Release(&request, 1);
  return request.released;
}

}  // namespace

// Cold, because the zeroes that it writes or saves take longer than to read its code.
TCMALLOC_COLD void ClearBlock(void* block, size_t size) {
  auto* place = static_cast<char*>(block);
  const int saved_errno = errno;
  const bool is_long = size >= kShortest;
  for (; is_long && size >= kPiece; place += kPiece, size -= kPiece) {
    if (HasFewPages(place) && TryRelease(place)) continue;
    std::memset(place, 0, kPiece);
  }
  errno = saved_errno;
  std::memset(place, 0, size);
}

}  // namespace tcmalloc
