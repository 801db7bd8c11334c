// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "system/region_name.h"

#include <sys/prctl.h>

#include <atomic>
#include <cerrno>
#include <cstdint>

#include "system/system_calls.h"

namespace tcmalloc {
namespace {

// Available since Linux 5.17; older headers do not have them.
constexpr int kPrSetVma = 0x53564d41;
constexpr unsigned long kPrSetVmaAnonName = 0;

constinit std::atomic<bool> names_supported{true};

}  // namespace

void NameRegion(void* start, size_t bytes, const char* name) {
  if (!names_supported.load(std::memory_order_relaxed)) return;
  const int result =
      system_calls.prctl(kPrSetVma, kPrSetVmaAnonName, reinterpret_cast<uintptr_t>(start), bytes,
                         reinterpret_cast<uintptr_t>(name));
  if (result != 0 && errno == EINVAL) names_supported.store(false, std::memory_order_relaxed);
}

}  // namespace tcmalloc
