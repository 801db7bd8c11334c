// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "debug/recent_stacks.h"

namespace tcmalloc {

constinit MappedObject<RecentStacks> recent_stacks[kPlaces];

RecentStacks* ClaimRecentStacks() {
  const uint32_t place = PlaceOfThread();
  RecentStacks* recent = recent_stacks[place].GetOrMap();
  if (TCMALLOC_UNLIKELY(recent == nullptr)) return nullptr;
  const bool claimed = TCMALLOC_LIKELY(IsOwnPlace(place)) ? recent->TryClaimOwn(&current_thread)
                                                          : recent->TryClaim();
  return TCMALLOC_LIKELY(claimed) ? recent : nullptr;
}

void RecentStacks::Add(const CallSite& site, const WalkReads& reads, StackId stack,
                       StackTable& stacks) {
  if (reads.count == 0 || !stacks.Retain(stack, kRetained)) return;
  const Key key = KeyOf(site);
  const size_t way = next_++ % kWays;
  Entry& entry = entries_[key.set][way];
  uint64_t& tags = tags_[key.set];
  tags = (tags & ~(uint64_t{0xFF} << (way * 8))) | uint64_t{key.tag} << (way * 8);
  if (entry.stack != 0) stacks.Release(entry.stack, entry.held);
  entry.stack = stack;
  entry.held = kRetained;
  entry.stack_pointer = site.stack_pointer;
  entry.return_address = site.return_address;
  entry.frame_pointer = 0;
  entry.count = 0;
  for (uint32_t i = 0; i < reads.count; ++i) {
    const WalkReads::Read& read = reads.reads[i];
    if (read.at == 0) {
      entry.frame_pointer = read.value;
    } else {
      AddWord(read, site, entry);
    }
  }
  while (entry.count % kStep != 0) AddWord(reads.reads[reads.count - 1], site, entry);
}

void RecentStacks::AddWord(const WalkReads::Read& read, const CallSite& site, Entry& entry) {
  const uintptr_t place = (read.at - site.stack_pointer) / sizeof(uintptr_t);
  entry.places[entry.count] = static_cast<uint16_t>(place);
  entry.values[entry.count] = read.value;
  ++entry.count;
  // No stack pointer: nobody finds the entry.
  if (place >= kMostPlaces || read.at % sizeof(uintptr_t) != 0) entry.stack_pointer = 0;
}

}  // namespace tcmalloc
