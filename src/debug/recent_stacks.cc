// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "debug/recent_stacks.h"

#include "unwind/claim_of_thread.h"

namespace tcmalloc {
namespace {

constinit RecentStacks recent_stacks[32];

}  // namespace

RecentStacks* ClaimRecentStacks() { return ClaimOfThread(recent_stacks); }

void RecentStacks::Add(const CallSite& site, const WalkReads& reads, StackId stack,
                       StackTable& stacks) {
  if (reads.count == 0 || !stacks.Retain(stack)) return;
  Entry& entry = entries_[IndexOf(site)][next_++ % kWays];
  if (entry.stack != 0) stacks.Release(entry.stack, entry.held);
  entry.stack = stack;
  entry.held = 1;
  entry.stack_pointer = site.stack_pointer;
  entry.return_address = site.return_address;
  entry.count = reads.count;
  for (uint32_t i = 0; i < reads.count; ++i) {
    const WalkReads::Read& read = reads.reads[i];
    const uintptr_t place = (read.at - site.stack_pointer) / sizeof(uintptr_t);
    entry.places[i] = read.at != 0 ? static_cast<uint16_t>(place) : kRegister;
    entry.values[i] = read.value;
    // No stack pointer: nobody finds the entry.
    const bool is_near = place < kRegister && read.at % sizeof(uintptr_t) == 0;
    if (read.at != 0 && !is_near) entry.stack_pointer = 0;
  }
}

}  // namespace tcmalloc
