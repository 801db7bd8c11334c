// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "hardened/guard_pages.h"

#include <errno.h>
#include <sys/mman.h>

#include <atomic>
#include <cstring>

#include "system/system_calls.h"

namespace tcmalloc {
namespace {

// Since Linux 6.13.
constexpr int kGuardInstall = 102;
constexpr int kGuardRemove = 103;

constinit std::atomic<bool> has_no_markers{false};
constinit std::atomic<int> protected_runs{0};

bool InstallMarkers(void* start, size_t bytes) {
  if (has_no_markers.load(std::memory_order_relaxed)) return false;
  if (system_calls.madvise(start, bytes, kGuardInstall) == 0) return true;
  if (errno == EINVAL) has_no_markers.store(true, std::memory_order_relaxed);
  return false;
}

bool Protect(void* start, size_t bytes) {
  if (protected_runs.fetch_add(1, std::memory_order_relaxed) < kMostProtected &&
      system_calls.mprotect(start, bytes, PROT_NONE) == 0) {
    system_calls.madvise(start, bytes, MADV_DONTNEED);
    return true;
  }
  protected_runs.fetch_sub(1, std::memory_order_relaxed);
  return false;
}

}  // namespace

GuardKind ForbidPages(void* start, size_t bytes) {
  const int saved_errno = errno;
  GuardKind kind = GuardKind::kNone;
  if (InstallMarkers(start, bytes)) {
    kind = GuardKind::kMarker;
  } else if (Protect(start, bytes)) {
    kind = GuardKind::kProtected;
  }
  errno = saved_errno;
  return kind;
}

bool AllowPages(void* start, size_t bytes, GuardKind kind) {
  if (kind == GuardKind::kNone) return true;
  const int saved_errno = errno;
  bool allowed = false;
  if (kind == GuardKind::kMarker) {
    allowed = system_calls.madvise(start, bytes, kGuardRemove) == 0;
  } else if (system_calls.mprotect(start, bytes, PROT_READ | PROT_WRITE) == 0) {
    allowed = true;
    protected_runs.fetch_sub(1, std::memory_order_relaxed);
  }
  errno = saved_errno;
  return allowed;
}

void ZeroPages(void* start, size_t bytes) {
  const int saved_errno = errno;
  // The first is for files that processes share, whose bytes would come back. The kernel refuses
  // the second for memory that is locked.
  if (system_calls.madvise(start, bytes, MADV_REMOVE) != 0 &&
      system_calls.madvise(start, bytes, MADV_DONTNEED) != 0) {
    std::memset(start, 0, bytes);
  }
  errno = saved_errno;
}

}  // namespace tcmalloc
