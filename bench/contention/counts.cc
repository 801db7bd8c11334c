// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "counts.h"

#include <sched.h>

#include "line_table.h"

namespace tcmalloc::bench {
namespace {

// Accesses so little above the running function's frame are to the thread's stack.
constexpr uintptr_t kStackBytes = 64 << 10;

constinit LineTable lines;
constinit std::atomic<uint32_t> threads{0};
constinit thread_local uint32_t this_thread = 0;

LineUser CurrentUser() {
  if (this_thread == 0) this_thread = threads.fetch_add(1, std::memory_order_relaxed) + 1;
  return {this_thread, static_cast<uint32_t>(::sched_getcpu())};
}

bool IsOnStack(const volatile void* address) {
  const auto frame = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  return reinterpret_cast<uintptr_t>(address) - frame < kStackBytes;
}

}  // namespace

constinit Counts counts;

void CountRead(const volatile void* address) {
  if (!IsOnStack(address)) lines.NoteRead(address, CurrentUser());
}

void CountWrite(const volatile void* address, const void* place) {
  if (IsOnStack(address)) return;
  const Sharing sharing = lines.NoteWrite(address, CurrentUser());
  if (sharing.displaced) counts.displaced.fetch_add(1, std::memory_order_relaxed);
  if (sharing.by_cpu) counts.shared_by_cpus.fetch_add(1, std::memory_order_relaxed);
  if (!sharing.by_thread) return;
  counts.shared_by_threads.fetch_add(1, std::memory_order_relaxed);
  counts.places.Add(place);
}

}  // namespace tcmalloc::bench
