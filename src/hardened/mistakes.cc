// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "hardened/mistakes.h"

#include "allocator/checked_block.h"
#include "allocator/named_alignment.h"
#include "base/message.h"
#include "central/corruption.h"
#include "central/sampled_page.h"
#include "hardened/canary.h"
#include "heap/heap.h"
#include "size_class/size_classes.h"

namespace tcmalloc {
namespace {

const char* AllocatorOf(BlockFamily family) {
  switch (family) {
    case BlockFamily::kMalloc:
      return "malloc";
    case BlockFamily::kNew:
      return "operator new";
    default:
      return "operator new[]";
  }
}

const char* CallOf(BlockClaim claim) { return claim.call != nullptr ? claim.call : "free"; }

// Returns the size of the block that was freed at `address`, or of the free pages that begin there
// by now; 0 if it is not known any more. The page map may name a span that was there before.
uint64_t BytesAt(const void* address) {
  const PageId page = PageId::Containing(address);
  const Span* span = heap.page_map().Get(page);
  if (span == nullptr || !span->Contains(page)) return 0;
  const bool has_objects = span->in_use() && span->state != Span::State::kLarge;
  if (has_objects) return kSizeClasses[ClassOfObject(span, address)].size;
  return span->start() == address ? span->bytes() : 0;
}

}  // namespace

void CrashOnNoLiveBlock(const void* address, const BlockMap::Byte* state, const char* call) {
  const uint8_t value = state != nullptr ? state->load(std::memory_order_relaxed) : 0;
  if (value == BlockMap::kFree || value == BlockMap::kQuarantined) {
    CrashOnDoubleFree(address, BytesAt(address), call);
  }
  CheckedSpanOf(address, call);
  // A block begins there, but the program does not own it.
  CrashOnUnknownBlock(address, call);
}

void CrashOnFamily(const void* block, LiveBlock live, BlockClaim claim) {
  Message message;
  message << "mismatched free of " << block << " (" << live.size << " bytes): allocated by "
          << AllocatorOf(live.family) << ", freed by " << CallOf(claim);
  CrashOnMisuse(message, block);
}

void CrashOnSize(const void* block, LiveBlock live, BlockClaim claim) {
  Message message;
  message << "sized delete of " << block << " with " << claim.size << " bytes, but the block has "
          << live.size << NoticedBy(CallOf(claim));
  CrashOnMisuse(message, block);
}

void CrashOnAlignment(const void* block, LiveBlock live, BlockClaim claim) {
  Message message;
  const size_t given = claim.alignment != BlockClaim::kUnknown ? claim.alignment : 0;
  message << "aligned delete of " << block << " (" << live.size << " bytes) with "
          << NamedAlignment(given) << ", but it was allocated with "
          << NamedAlignment(live.alignment()) << NoticedBy(CallOf(claim));
  CrashOnMisuse(message, block);
}

void CrashOnOverflow(const char* block, const LiveBlock& live, const char* damage,
                     const char* call) {
  const void* next = block + live.capacity;
  const bool is_before_next =
      damage >= block + live.size + Canary::kMostBytes && live.guard == GuardKind::kNone;
  Message message;
  message << "overflow of " << static_cast<const void*>(block) << " (" << live.size
          << " bytes): " << static_cast<const void*>(damage) << " behind it was written to";
  if (is_before_next) message << ", or before the block at " << next;
  message << NoticedBy(call);
  CrashOnMisuse(message, block);
}

void CrashOnUnderflow(const void* block, size_t size, const char* call) {
  Message message;
  message << "underflow of " << block << " (" << size
          << " bytes): the memory before it was written to" << NoticedBy(call);
  CrashOnMisuse(message, block);
}

void CrashOnWriteAfterFree(const void* block, size_t bytes, const void* damage) {
  Message message;
  message << "write after free of " << block << " (" << bytes << " bytes): " << damage
          << " was written to";
  CrashOnMisuse(message, block);
}

}  // namespace tcmalloc
