// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "hardened/hardened_heap.h"

#include <algorithm>
#include <cstring>

#include "allocator/allocate.h"
#include "allocator/deallocate.h"
#include "allocator/slow_path.h"
#include "base/bits.h"
#include "central/corruption.h"
#include "hardened/below_checks.h"
#include "hardened/guard_pages.h"
#include "hardened/hardened_heap_inl.h"
#include "hardened/mistakes.h"
#include "hook/hooks.h"
#include "system/auxv.h"
#include "system/clock.h"
#include "system/own_operators.h"
#include "system/random.h"
#include "system/single_threaded.h"
#include "thread/thread_state.h"

namespace tcmalloc {
namespace {

// The alignment of every block whose program asks for none.
constexpr size_t kPlainAlignment = 16;
constexpr size_t kLargestRequest = size_t{1} << kAddressBits;
// The option for the quarantine, divided by this, is what the blocks of one class in one part may
// hold. Programs use a quarter of the classes at a time.
constexpr size_t kQuarantineShare = Quarantine::kParts * 64;
constexpr size_t kLargestShuffled = 1024;
constexpr size_t kShuffledBytes = 1024;
// Requests of fewer bytes take the fast path.
constexpr size_t kLargestPlain = std::min(kLargestShuffled, kClassBySize.size() - 1);
// Blocks that are looked at when the program ends.
constexpr size_t kMostChecked = size_t{1} << 18;

uint8_t ClassFor(size_t bytes, size_t alignment) {
  if (alignment > kPlainAlignment) return SizeClassForAligned(bytes, alignment);
  return bytes <= kMaxSmallSize ? SizeClassFor(std::max(bytes, kPlainAlignment)) : 0;
}

// Ends the process if the next object of the thread's list is at null: a word with only its highest
// bit set leads there under any key, and the fast path, which took `object`, lets it pass.
TCMALLOC_ALWAYS_INLINE void CheckNextObject(const void* object, uint8_t size_class) {
  const FastThread thread = current_thread;
  if (thread->is_served_by_cpus()) return;
  if (TCMALLOC_LIKELY(thread.lists()->heads[size_class] != ReferenceTo(nullptr))) return;
  CrashOnCorruptedList(object, size_class);
}

// Returns true if a call of `family` gives back the block of another one. Where the program has
// operators of its own, that need not be a mistake, and nothing else that the call says can be
// compared.
bool IsWrongFamily(const LiveBlock& block, BlockFamily family) {
  return TCMALLOC_UNLIKELY(block.family != family) && OperatorsAreOurs();
}

// Takes an object of a class, of `capacity` bytes, from the allocator below. May be memory of the
// emergency arena. Null if there is no memory.
TCMALLOC_ALWAYS_INLINE void* TakeObject(size_t capacity, uint8_t size_class) {
  void* object = AllocateOr<AllocateUnreported>(capacity);
  CheckNextObject(object, size_class);
  return object;
}

// Returns true if AllocatePlain serves a block of `size` bytes without Allocate.
bool IsPlain(size_t size) { return size < kLargestPlain && !thread_state.is_below_checks(); }

}  // namespace

constinit HardenedHeap hardened_heap;

bool HardenedHeap::Initialize(const Options& options) {
  constexpr uint64_t kSalt = 0x6861'7264;
  uint64_t random = RandomSeed(kSalt);
  canary_ = Canary(random);
  random = NextRandom(~random);
  large_random_.store(random, std::memory_order_relaxed);
  zeroes_ = options.zero_on_free;
  const uint64_t word = FreedWord(zeroes_);
  filling_ = {WordPair{word, word},
              WordPair{word, (word & ~kLastByte) | (canary_.word() & kLastByte)}};
  checks_claims_ = options.check_deletes;
  single_threaded_ = SingleThreadedFlag();
  return map_.Initialize(NextRandom(random + 2)) &&
         pools_.Initialize(heap.arena(), options.quarantine_size / kQuarantineShare, filling_,
                           NextRandom(random + 1)) &&
         quarantine_.Initialize(heap.arena(), options.quarantine_size / kQuarantineShare,
                                kMaxSmallSize, NextRandom(random)) &&
         fresh_.Initialize(heap.arena(), kShuffledBytes, kLargestShuffled, NextRandom(~random));
}

// Hands an object that was there before out in place of a fresh one.
void* HardenedHeap::Shuffle(uint8_t part, void* fresh, size_t wanted, uint8_t size_class) {
  void* object = fresh_.Exchange(part, fresh, size_class);
  return TCMALLOC_LIKELY(object != nullptr) ? object : TakeSecond(part, wanted, size_class);
}

// Takes an object in place of one that went to an empty place. May be memory of the emergency
// arena. Null if there is no memory.
void* HardenedHeap::TakeSecond(uint8_t part, size_t wanted, uint8_t size_class) {
  void* object = TakeObject(wanted, size_class);
  return object != nullptr ? object : fresh_.Exchange(part, nullptr, size_class);
}

void* HardenedHeap::TakeSmall(const BlockRequest& request, LiveBlock* block) {
  const uint8_t c = block->size_class;
  block->capacity = kSizeClasses[c].size;
  if (request.alignment > kPlainAlignment) {
    void* object = AllocateAlignedUnreported(block->capacity, request.alignment);
    CheckNextObject(object, c);
    return object;
  }
  return TakeObject(block->capacity, c);
}

void* HardenedHeap::TakeLarge(const BlockRequest& request, LiveBlock* block, bool* zeroed) {
  const size_t page = KernelPageSize();
  const size_t bytes = request.size + 1 + page;
  const size_t alignment = request.alignment > kPlainAlignment ? request.alignment : 0;
  void* start = AllocateLargeUnreported(bytes, alignment, zeroed);
  if (start == nullptr || heap.emergency().Owns(start)) return start;
  block->capacity = heap.page_map().Get(PageId::Containing(start))->bytes() - page;
  // One call here, and one when the block is freed.
  block->guard = ForbidWithin(GuardPageOf(static_cast<char*>(start), *block), page, 2, 0);
  if (block->guard == GuardKind::kNone) block->capacity += page;
  return start;
}

// Returns the page of the kernel behind a block in a span of its own.
char* HardenedHeap::GuardPageOf(char* block, const LiveBlock& live) {
  return block + live.capacity;
}

// Makes the page behind a block accessible that has no access.
void HardenedHeap::Unguard(char* block, const LiveBlock& live) {
  AllowPages(GuardPageOf(block, live), KernelPageSize(), live.guard);
}

// Takes the access to pages, if that is not too much for now. `calls` of the kernel and faults of
// `lost` bytes come with it, sooner or later.
GuardKind HardenedHeap::ForbidWithin(char* start, size_t bytes, int calls, size_t lost) {
  const int64_t cost = GuardBudget::CostOf(calls, lost / KernelPageSize());
  return budget_.Take(cost, MonotonicNanoseconds()) ? ForbidPages(start, bytes) : GuardKind::kNone;
}

// Makes the byte before a block a canary, unless the block before it is live and has one there.
// Nobody owns the byte then.
void HardenedHeap::GuardFront(char* block, size_t capacity) const {
  // In another leaf of the map, perhaps, or nowhere.
  const BlockMap::Byte* before = map_.Find(block - capacity);
  // Among samples a block of another size may come before. The byte is its last one, which has this
  // value anyway, or nobody's.
  const Span* span = heap.page_map().Get(PageId::Containing(block));
  const bool sampled = span != nullptr && span->state == Span::State::kSampled;
  // Acquire pairs with the release in BlockMap::Set: a live block has its canary.
  if (sampled || before == nullptr || before->load(std::memory_order_acquire) < BlockMap::kLive) {
    block[-1] = static_cast<char>(canary_.ByteAt(block - 1));
  }
}

// Makes a block known. Returns false if there is no memory for that.
bool HardenedHeap::Publish(void* start, const LiveBlock& block) {
  auto* bytes = static_cast<char*>(start);
  BlockMap::Byte* state = map_.Ensure(start);
  if (TCMALLOC_UNLIKELY(state == nullptr)) return false;
  canary_.Write(bytes, block.size, block.capacity);
  if (block.size_class != 0 && !HasFront(bytes)) GuardFront(bytes, block.capacity);
  BlockMap::Set(state, block);
  return true;
}

// Returns memory of the allocator below, and completes *block. In a signal handler that interrupted
// it, memory of the emergency arena. Sets *zeroed to true if all that the program gets is known to
// be zero.
void* HardenedHeap::Take(const BlockRequest& request, LiveBlock* block, bool* zeroed) {
  if (TCMALLOC_UNLIKELY(thread_state.is_below_checks())) {
    return heap.emergency().Allocate(std::max<size_t>(request.size, 1),
                                     std::max(request.alignment, kPlainAlignment));
  }
  const BelowChecks scope;
  void* start =
      block->size_class != 0 ? TakeSmall(request, block) : TakeLarge(request, block, zeroed);
  if (TCMALLOC_UNLIKELY(start == nullptr || heap.emergency().Owns(start))) return start;
  if (block->size_class != 0 && block->capacity <= kLargestShuffled && block->log2_alignment == 0) {
    start = Shuffle(scope.part(), start, block->capacity, block->size_class);
    if (TCMALLOC_UNLIKELY(start == nullptr || heap.emergency().Owns(start))) return start;
  }
  if (TCMALLOC_LIKELY(Publish(start, *block))) return start;
  Unguard(static_cast<char*>(start), *block);
  DeallocateUnreported(start);
  return nullptr;
}

void* HardenedHeap::Allocate(BlockRequest request) {
  if (request.size >= kLargestRequest || request.alignment > kLargestRequest) return nullptr;
  if (request.alignment <= kPlainAlignment) {
    request.size = SizeToGive(request.size);
    void* start = TryAllocateShort<false>(request.size, request.family);
    if (start == nullptr) start = TryAllocate(request.size, request.family);
    if (start == nullptr && IsPlain(request.size)) {
      start = AllocateGiven(request.size, request.family);
      if (start == nullptr) return nullptr;
    }
    if (start != nullptr) return request.zeroed ? std::memset(start, 0, request.size) : start;
  }
  void* start = AllocateBelow(request);
  if (TCMALLOC_LIKELY(start != nullptr) || !GiveUpWaiting(request.size)) return start;
  return AllocateBelow(request);
}

// Allocates a block whose memory comes from the allocator below.
void* HardenedHeap::AllocateBelow(const BlockRequest& request) {
  LiveBlock block;
  block.size = request.size;
  block.family = request.family;
  if (request.alignment > kPlainAlignment) {
    block.size = std::max<size_t>(block.size, 1);
    block.log2_alignment = static_cast<uint8_t>(Log2Ceil(request.alignment));
  }
  block.size_class = ClassFor(block.size + 1, request.alignment);
  bool zeroed = false;
  void* start = Take(request, &block, &zeroed);
  if (TCMALLOC_UNLIKELY(start == nullptr)) return nullptr;
  if (request.zeroed) {
    if (!zeroed) std::memset(start, 0, request.size);
  } else {
    std::memset(start, kFreshFill, std::min(request.size, kFreshBytes));
  }
  if (TCMALLOC_UNLIKELY(!hooks.new_block.empty())) ReportNew(start, request.size);
  return start;
}

// Serves requests whose memory was a block before. The others need a place in the map, go through
// the places of fresh blocks, or are no memory of the heap.
void* HardenedHeap::AllocatePlain(size_t size, BlockFamily family) {
  const size_t given = SizeToGive(size);
  if (TCMALLOC_LIKELY(IsPlain(given))) return AllocateGiven(given, family);
  return Allocate({.size = size, .family = family});
}

// Returns how many bytes a program gets that asks for `size` without an alignment. Hooks are told
// what was asked for.
size_t HardenedHeap::SizeToGive(size_t size) const {
  return hooks.new_block.empty() ? Padded(size) : size;
}

// Does what AllocatePlain does for a size that may be padded already, and is plain.
void* HardenedHeap::AllocateGiven(size_t size, BlockFamily family) {
  LiveBlock block;
  block.size = size;
  block.family = family;
  block.size_class = kClassBySize[std::max(size + 1, kPlainAlignment)];
  block.capacity = kSizeClasses[block.size_class].size;
  char* start;
  {
    const BelowChecks scope;
    start = TakeWaiting(scope.part(), block.size_class);
    BlockMap::Byte* state;
    if (start != nullptr) {
      state = map_.Known(start);
    } else {
      const Introduced other = TakeNew(scope.part(), block);
      start = other.start;
      state = other.state;
    }
    if (TCMALLOC_LIKELY(state != nullptr)) {
      canary_.WriteFreshOfAny(start, size, block.capacity);
      if (TCMALLOC_UNLIKELY(!HasFront(start))) GuardFront(start, block.capacity);
      BlockMap::Set(state, block);
    }
  }
  if (TCMALLOC_UNLIKELY(start == nullptr)) {
    return GiveUpWaiting(size) ? AllocateBelow({.size = size, .family = family}) : nullptr;
  }
  if (TCMALLOC_UNLIKELY(!hooks.new_block.empty())) ReportNew(start, size);
  return start;
}

// Returns an object of the allocator below. It has no state if it is not the heap's, or null.
HardenedHeap::Introduced HardenedHeap::TakeNew(uint8_t part, const LiveBlock& block) {
  auto* start = static_cast<char*>(TakeObject(block.capacity, block.size_class));
  BlockMap::Byte* state = map_.Find(start);
  const bool was_block =
      state != nullptr && state->load(std::memory_order_relaxed) == BlockMap::kFree;
  return TCMALLOC_LIKELY(was_block) ? Introduced{start, state} : Introduce(part, start, block);
}

// Returns a block in place of memory that was none before. It has no state if it is not the heap's,
// or null.
HardenedHeap::Introduced HardenedHeap::Introduce(uint8_t part, char* start,
                                                 const LiveBlock& block) {
  if (start == nullptr || heap.emergency().Owns(start)) return {start, nullptr};
  start = static_cast<char*>(fresh_.Exchange(part, start, block.size_class));
  if (TCMALLOC_UNLIKELY(start == nullptr)) {
    start = static_cast<char*>(TakeSecond(part, block.capacity, block.size_class));
    if (start == nullptr || heap.emergency().Owns(start)) return {start, nullptr};
  }
  BlockMap::Byte* state = map_.Ensure(start);
  if (state != nullptr) return {start, state};
  DeallocateUnreported(start);
  return {nullptr, nullptr};
}

// Returns true if a live block begins there.
bool HardenedHeap::IsLive(const BlockMap::Byte* state) {
  // Acquire pairs with the release in BlockMap::Set.
  return TCMALLOC_LIKELY(state != nullptr) &&
         TCMALLOC_LIKELY(state->load(std::memory_order_acquire) >= BlockMap::kLive);
}

// Returns the state of a block; ends the process if none begins there that is live.
uint8_t HardenedHeap::CheckLive(const void* block, const BlockMap::Byte* state,
                                const char* call) const {
  // Acquire pairs with the release in BlockMap::Set.
  const uint8_t value = state != nullptr ? state->load(std::memory_order_acquire) : 0;
  if (TCMALLOC_UNLIKELY(value < BlockMap::kLive)) CrashOnNoLiveBlock(block, state, call);
  return value;
}

void HardenedHeap::CheckClaim(const void* block, const LiveBlock& live,
                              const BlockClaim& claim) const {
  if (TCMALLOC_UNLIKELY(!checks_claims_)) return;
  if (IsWrongFamily(live, claim.family)) CrashOnFamily(block, live, claim);
  if (TCMALLOC_UNLIKELY(live.family != claim.family)) return;
  const bool says_more = claim.size != BlockClaim::kUnknown ||
                         claim.alignment != BlockClaim::kUnknown ||
                         claim.family != BlockFamily::kMalloc;
  if (says_more) CheckSizeAndAlignment(block, live, claim);
}

// pvalloc rounds up what the program asks for, and so does Padded where it did or did not do so
// when the block was allocated.
bool HardenedHeap::IsSizeOf(const LiveBlock& block, size_t size) const {
  if (Padded(size) == Padded(block.size)) return true;
  if (block.log2_alignment == LiveBlock::kShrunk) return size < block.size;
  const size_t page = KernelPageSize();
  return (size_t{1} << block.log2_alignment) == page && block.family == BlockFamily::kMalloc &&
         size < block.size && AlignUp(std::max<size_t>(size, 1), page) == block.size;
}

void HardenedHeap::CheckSizeAndAlignment(const void* block, LiveBlock live,
                                         BlockClaim claim) const {
  if (claim.size != BlockClaim::kUnknown && TCMALLOC_UNLIKELY(!IsSizeOf(live, claim.size)) &&
      !(claim.size == 0 && live.size == 1)) {
    CrashOnSize(block, live, claim);
  }
  const bool is_aligned =
      claim.alignment != BlockClaim::kUnknown && claim.alignment > kPlainAlignment;
  // A block of 32 bytes or less does not know its alignment, which is no more than they are; small
  // ones are no matter.
  if (live.capacity <= 32 && !(is_aligned && claim.alignment > live.capacity)) return;
  if (live.family == BlockFamily::kMalloc && !is_aligned) return;
  if (TCMALLOC_UNLIKELY((is_aligned ? claim.alignment : 0) != live.alignment())) {
    CrashOnAlignment(block, live, claim);
  }
}

// Looks at the bytes behind a block and at the one before it.
void HardenedHeap::CheckSurroundings(const char* block, const LiveBlock& live,
                                     const char* call) const {
  const char* damage = canary_.Check(block, live.size, live.capacity);
  if (TCMALLOC_UNLIKELY(damage != nullptr)) CrashOnOverflow(block, live, damage, call);
  if (live.size_class != 0 && TCMALLOC_UNLIKELY(!HasFront(block))) {
    CrashOnUnderflow(block, live.size, call);
  }
}

// Frees a block of the emergency arena; ends the process if it is none.
void HardenedHeap::FreeUnknown(void* block, const BlockMap::Byte* state, const char* call) {
  if (!heap.emergency().Owns(block)) CrashOnNoLiveBlock(block, state, call);
  if (!hooks.delete_block.empty()) ReportDelete(block);
  // The slow path would give deferred frees to the lists of a thread that a handler interrupted.
  heap.emergency().Free(block);
}

void HardenedHeap::Free(void* block, const BlockClaim& claim) {
  BlockMap::Byte* state = map_.Find(block);
  // Acquire pairs with the release in BlockMap::Set.
  uint8_t value = state != nullptr ? state->load(std::memory_order_acquire) : 0;
  if (TCMALLOC_UNLIKELY(value < BlockMap::kLive)) return FreeUnknown(block, state, claim.call);
  const LiveBlock live = BlockMap::Get(block, state, value);
  CheckClaim(block, live, claim);
  auto* start = static_cast<char*>(block);
  CheckSurroundings(start, live, claim.call);
  // Of two threads that free the same block, one gets here first. Acquire-release pairs with the
  // release in BlockMap::Set and the acquire in CheckLive.
  if (TCMALLOC_UNLIKELY(!state->compare_exchange_strong(value, BlockMap::kQuarantined,
                                                        std::memory_order_acq_rel))) {
    CrashOnNoLiveBlock(block, state, claim.call);
  }
  if (TCMALLOC_UNLIKELY(!hooks.delete_block.empty())) ReportDelete(block);
  TCMALLOC_LIKELY(live.size_class != 0) ? FreeSmall(start, live) : FreeLarge(start, live);
}

// Changes the size of a live block, which stays where it is. Returns false if it must move.
bool HardenedHeap::TryResize(char* block, BlockMap::Byte* state, const LiveBlock& live,
                             size_t size) const {
  // It stays unless it becomes much smaller.
  const bool fits =
      size < live.capacity && size >= live.capacity / 2 && BlockMap::CanHold(size, live.capacity);
  if (!fits || live.log2_alignment != 0 || BlocksAreWatched()) return false;
  Resize(block, state, live, size);
  return true;
}

// Changes the size of a live block, for which the map can tell it. The program gets nothing of the
// canary that was there.
void HardenedHeap::Resize(char* block, BlockMap::Byte* state, LiveBlock live, size_t size) const {
  if (size > live.size) std::memset(block + live.size, kFreshFill, size - live.size);
  live.size = size;
  canary_.Write(block, size, live.capacity);
  BlockMap::Set(state, live);
}

// Makes a live block smaller that cannot move, because no block fails to shrink. It has no
// alignment then, as one that moved. One whose size the map could not tell stays as long as it is.
void HardenedHeap::ShrinkInPlace(char* block, BlockMap::Byte* state, size_t size) const {
  LiveBlock live = BlockMap::Get(block, state, CheckLive(block, state, nullptr));
  const bool can_tell = BlockMap::CanHold(size, live.capacity);
  live.log2_alignment = can_tell ? 0 : LiveBlock::kShrunk;
  Resize(block, state, live, can_tell ? size : live.size);
}

void* HardenedHeap::Reallocate(void* block, size_t asked) {
  constexpr char kCall[] = "realloc";
  const size_t size = SizeToGive(asked);
  BlockMap::Byte* state = map_.Find(block);
  // Blocks of the emergency arena have no state.
  const bool is_emergency = !IsLive(state) && heap.emergency().Owns(block);
  size_t old_size;
  if (TCMALLOC_UNLIKELY(is_emergency)) {
    old_size = EmergencyArena::SizeOf(block);
  } else {
    const LiveBlock live = BlockMap::Get(block, state, CheckLive(block, state, kCall));
    BlockClaim claim;
    claim.call = kCall;
    if (checks_claims_ && IsWrongFamily(live, claim.family)) CrashOnFamily(block, live, claim);
    CheckSurroundings(static_cast<const char*>(block), live, kCall);
    if (asked == live.size && !BlocksAreWatched()) return block;
    if (TryResize(static_cast<char*>(block), state, live, size)) return block;
    old_size = live.size;
  }
  void* moved = TryAllocate(size, BlockFamily::kMalloc);
  if (moved == nullptr) moved = Allocate({.size = asked});
  if (TCMALLOC_UNLIKELY(moved == nullptr)) {
    if (asked > old_size) return nullptr;
    if (!is_emergency) ShrinkInPlace(static_cast<char*>(block), state, asked);
    return block;
  }
  std::memcpy(moved, block, std::min(asked, old_size));
  if (!TryFree(block, BlockFamily::kMalloc)) Free(block, {.call = kCall});
  return moved;
}

void HardenedHeap::SetFamily(void* block, BlockFamily family) {
  if (heap.emergency().Owns(block)) return;
  BlockMap::Byte* state = map_.Known(block);
  LiveBlock live = BlockMap::Get(block, state, CheckLive(block, state, nullptr));
  live.family = family;
  BlockMap::Set(state, live);
}

// Notes that the program asked for the size of a block.
void HardenedHeap::NoteAsk() {
  const int asks = asks_.load(std::memory_order_relaxed);
  if (TCMALLOC_LIKELY(asks == kManyAsks)) return;
  asks_.store(asks + 1, std::memory_order_relaxed);
  if (asks + 1 == kManyAsks) padding_.store(BlockMap::kGranule - 1, std::memory_order_relaxed);
}

// Notes that a thread gets a group of blocks.
void HardenedHeap::NoteGroup() {
  const int asks = asks_.load(std::memory_order_relaxed);
  if (asks == 0 || asks == kManyAsks) return;
  asks_.store(std::max(asks - kFewAsks, 0), std::memory_order_relaxed);
}

size_t HardenedHeap::SizeOf(const void* block, const char* call) {
  if (block == nullptr) return 0;
  NoteAsk();
  const BlockMap::Byte* state = map_.Find(block);
  if (!IsLive(state) && heap.emergency().Owns(block)) return EmergencyArena::SizeOf(block);
  return BlockMap::Get(block, state, CheckLive(block, state, call)).size;
}

size_t HardenedHeap::SizeFor(size_t size, size_t alignment) const {
  if (std::max(size, alignment) >= kLargestRequest) return 0;
  return alignment > kPlainAlignment ? std::max<size_t>(size, 1) : Padded(size);
}

bool HardenedHeap::Owns(const void* block) const {
  if (heap.emergency().Owns(block)) return true;
  const BlockMap::Byte* state = map_.Find(block);
  return state != nullptr && state->load(std::memory_order_relaxed) >= BlockMap::kLive;
}

void HardenedHeap::CheckAll() {
  constexpr char kCall[] = "the check at exit";
  CheckQuarantine();
  // Another thread may free a live block while it is looked at, and one that a fork left behind may
  // have been about to write a canary.
  if (heap.front_end().threads() > 1 || heap.front_end().has_lost_threads()) return;
  // A handler that comes meanwhile does not wait for the lock of the walk.
  const SlowPath slow_path;
  if (slow_path.reentrant()) return;
  size_t left = kMostChecked;
  heap.page_heap().ForEachSpan([&](const Span& span) {
    const bool small = span.state == Span::State::kSmall || span.state == Span::State::kSampled;
    if (!small && span.state != Span::State::kLarge) return;
    const size_t objects = small ? span.capacity : 1;
    const size_t size = small ? kSizeClasses[span.size_class].size : 0;
    const BlockMap::Byte* first = map_.FindAll(span.start(), span.bytes());
    for (size_t i = 0; i < objects && left > 0; ++i, --left) {
      const char* block = span.start() + i * size;
      const BlockMap::Byte* state =
          first != nullptr ? first + i * size / BlockMap::kGranule : map_.Find(block);
      if (state == nullptr) return;
      // Acquire pairs with the release in BlockMap::Set.
      const uint8_t value = state->load(std::memory_order_acquire);
      if (value < BlockMap::kLive) continue;
      const LiveBlock live = BlockMap::Get(block, state, value);
      if (canary_.Check(block, live.size, live.capacity) == nullptr && HasFront(block)) continue;
      // A thread whose front end is gone may have freed it meanwhile. Acquire pairs with the
      // release in BlockMap::Set.
      if (state->load(std::memory_order_acquire) == value) CheckSurroundings(block, live, kCall);
    }
  });
}

}  // namespace tcmalloc
