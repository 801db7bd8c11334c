// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The state of every block of the hardened mode, apart from the blocks.

#ifndef TCMALLOC_HARDENED_BLOCK_MAP_H_
#define TCMALLOC_HARDENED_BLOCK_MAP_H_

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "allocator/block_functions.h"
#include "base/attributes.h"
#include "hardened/guard_pages.h"
#include "pages/page_types.h"
#include "size_class/size_classes.h"
#include "system/address_window.h"

namespace tcmalloc {

// The map's record of a live block.
struct LiveBlock {
  static constexpr uint8_t kShrunk = 63;  // more than any address has

  size_t size = 0;      // that the program may use
  size_t capacity = 0;  // of the memory, without guard pages; more than `size`
  BlockFamily family = BlockFamily::kMalloc;
  // 0 if the program asked for 16 or less; kShrunk if it has less than `size`, but how much the map
  // could not tell.
  uint8_t log2_alignment = 0;
  uint8_t size_class = 0;  // 0 if the block is a span of its own
  GuardKind guard = GuardKind::kNone;

  // Returns the alignment that the program asked for, or 0 if that was 16 or less.
  size_t alignment() const {
    return log2_alignment % kShrunk != 0 ? size_t{1} << log2_alignment : 0;
  }
};

// A live block as the fast paths look at it that has a short slack.
struct ShortBlock {
  std::atomic<uint8_t>* state = nullptr;
  uint8_t live = 0;        // what the state was
  uint8_t size_class = 0;  // if it is one, or more
  uint8_t slack = 0;
};

// A live block of a small class, as the fast paths look at it.
struct PlainBlock {
  uint8_t size_class = 0;
  size_t capacity = 0;
  size_t slack = 0;  // that the memory has more than the program asked for
};

// A byte for each 16 bytes of memory. The byte of the first 16 bytes of a block is its state; those
// of the following tell its size. The bytes lie in leaves, which are mapped between pages without
// access as they are needed, and stay. Lock-free; thread safe.
class BlockMap {
 public:
  using Byte = std::atomic<uint8_t>;

  static constexpr size_t kGranule = 16;

  // States of an address. Any other value that is not live means that no block begins there.
  static constexpr uint8_t kLive = 0x80;  // and any higher value
  static constexpr uint8_t kFree = 0x7e;
  static constexpr uint8_t kQuarantined = 0x7f;

  constexpr BlockMap() = default;
  BlockMap(const BlockMap&) = delete;
  BlockMap& operator=(const BlockMap&) = delete;

  // Called once, before all others. `random` picks the place of the root. Returns false if there is
  // no memory.
  [[nodiscard]] bool Initialize(uint64_t random);

  // Returns the state of an address, or null if no block was ever near.
  Byte* Find(const void* address) const {
    Byte* state = FindLow(address);
    return TCMALLOC_LIKELY(state != nullptr) ? state : FindHigh(address);
  }
  // Works as Find, but returns null for high addresses: the heap does not ask for them, but may get
  // some.
  TCMALLOC_ALWAYS_INLINE Byte* FindLow(const void* address) const {
    const uintptr_t granule = GranuleOf(address);
    const uintptr_t leaf_number = granule / kLeafBytes;
    if (TCMALLOC_UNLIKELY(leaf_number >= low_leaves_)) return nullptr;
    // Acquire pairs with the release in MakeLeaf.
    const uintptr_t leaf = root_[leaf_number].load(std::memory_order_acquire);
    if (TCMALLOC_UNLIKELY(leaf == 0)) return nullptr;
    return StateIn(leaf, granule);
  }
  // Works as Find, for a block that has been live.
  TCMALLOC_ALWAYS_INLINE Byte* Known(const void* block) const {
    const uintptr_t granule = reinterpret_cast<uintptr_t>(block) / kGranule;
    return StateIn(root_[granule / kLeafBytes].load(std::memory_order_relaxed), granule);
  }
  // Returns the state of the first of some addresses, if those of the others follow. They do unless
  // part of the map begins among them.
  const Byte* FindAll(const void* first, size_t bytes) const {
    const uintptr_t granule = reinterpret_cast<uintptr_t>(first) / kGranule;
    const uintptr_t last = granule + (bytes - 1) / kGranule;
    return granule / kLeafBytes == last / kLeafBytes ? Find(first) : nullptr;
  }
  // Works as Find, for a block that may be the first one near. Null if there is no memory.
  TCMALLOC_ALWAYS_INLINE Byte* Ensure(const void* block) {
    Byte* state = FindLow(block);
    return TCMALLOC_LIKELY(state != nullptr) ? state : EnsureSlow(block);
  }

  // Keeps the size of a freed block of more than 96 bytes, and returns it.
  static void KeepSize(Byte* state, size_t size, size_t capacity);
  static size_t KeptSize(const Byte* state, size_t capacity);

  // Returns true if the map can tell the size of such a block. That is so for every block of the
  // class, or the number of pages, that its size calls for.
  static bool CanHold(size_t size, size_t capacity);

  // Makes a block live. Requires CanHold.
  static void Set(Byte* state, const LiveBlock& block);
  // Returns the block whose state is `live`.
  static LiveBlock Get(const void* start, const Byte* state, uint8_t live);

  // Do the same for blocks for which the program asked without an alignment. Get returns false for
  // others, and for those of another family or of no class below `classes`. Set requires that the
  // bytes behind the state tell class and alignment: of a block that was live and such, or of any
  // after MakePlain.
  TCMALLOC_ALWAYS_INLINE static bool GetPlain(const Byte* state, uint8_t live, BlockFamily family,
                                              uint8_t classes, PlainBlock* block);
  TCMALLOC_ALWAYS_INLINE static void SetPlain(Byte* state, BlockFamily family,
                                              const PlainBlock& block);
  static void MakePlain(Byte* state, uint8_t size_class);
  // Do the same for a slack of at most 16, in fewer instructions. GetShort completes a block whose
  // state is `live`; the caller looks at the class. SetShort takes the size, which tells the slack.
  struct ShortStates {
    constexpr ShortStates() = default;
    explicit ShortStates(size_t capacity);

    uint8_t first = 0;   // of the first family, with a slack of 16
    uint8_t family = 0;  // the distance from there to the next one
  };
  TCMALLOC_ALWAYS_INLINE static bool GetShort(BlockFamily family, ShortBlock* block);
  TCMALLOC_ALWAYS_INLINE static void SetShort(Byte* state, BlockFamily family,
                                              const ShortStates& states, size_t size);
  // Works as MakePlain for memory that is no block. Where longer blocks were, a byte of a size may
  // look like the state of a block in quarantine, and does so no more.
  static void MakeNew(Byte* state, uint8_t size_class);

 private:
  // The bytes of a block, by the number of 16 bytes that it has:
  //
  //     state           kLive and, in seven bits, the family and a slack
  //     size class      if there are two
  //     log2_alignment  if there are three
  //     slack           if there are four, seven bits; if six, 21 bits in three bytes
  //
  // The slack is what the block has more than the program asked for. It is 1 to kMostSlack in the
  // state or, as kLongSlack, in the bytes behind. A block of 16 bytes has no byte but the state.
  // One of 32 has a longer slack in place of its size class, one of 48 in place of its alignment.
  static constexpr size_t kTinyBytes = 16;
  static constexpr size_t kTinySlacks = 16;
  static constexpr size_t kMostSlack = 23;
  static constexpr uint8_t kShortSlacks = 16;
  static constexpr uint8_t kLongSlack = 0;
  static constexpr size_t kCodes = kMostSlack + 1;  // of each family
  static constexpr uint8_t kFamilies = 3;
  static constexpr uint8_t kFirstTiny = kFamilies * kCodes;
  static_assert(kFirstTiny + kFamilies * kTinySlacks <= 128);

  // Values in place of a size class.
  static constexpr uint8_t kShortOf32 = kSizeClassCount;  // and up: 32 bytes with a long slack
  static constexpr uint8_t kFirstSpan = 0x70;             // and up, by guard: a span of its own
  static constexpr size_t kShortBytes = 32;
  static constexpr uint8_t kClassOf32 = SizeClassFor(kShortBytes);
  static_assert(kShortOf32 + kShortBytes - kMostSlack <= kFirstSpan);

  // Blocks of that many bytes have no alignment of more than 16, and no fourth byte.
  static constexpr size_t kThreeByteBytes = 48;
  // Blocks of fewer bytes have one byte for a long slack.
  static constexpr size_t kThreeSlackBytes = 96;

  static constexpr int kGranuleLog2 = 4;
  static_assert(size_t{1} << kGranuleLog2 == kGranule);
  static constexpr size_t kLeafBytes = size_t{1} << 18;
  static constexpr size_t kLeaves = (size_t{1} << (kAddressBits - kGranuleLog2)) / kLeafBytes;

  // The root has an entry for each leaf that there can be, but only parts of it are mapped: the
  // entries of the addresses that the heap asks for, from the start, and parts of this many others
  // as they are needed. 64 KiB, because that is a page of some kernels.
  static constexpr size_t kPartEntries = (size_t{64} << 10) / sizeof(uintptr_t);
  static constexpr size_t kParts = kLeaves / kPartEntries;
  static constexpr size_t kMostLowLeaves = (kLargestWindow >> kGranuleLog2) / kLeafBytes;
  // The most leaves that are mapped at once, and a bound that no number of them reaches.
  static constexpr size_t kMostAtOnce = 1024;
  static constexpr size_t kMostInRow = 4096;
  static_assert(kMostAtOnce < kMostInRow);
  // The share of a limit of the address space that the first entries may take.
  static constexpr size_t kLimitShare = 256;

  static void SetLongSlack(Byte* state, size_t slack, size_t capacity);
  static size_t GetLongSlack(const Byte* state, size_t capacity);
  // Returns the state of a granule, the number of 16 bytes of the address space, given the entry of
  // its leaf.
  TCMALLOC_ALWAYS_INLINE static Byte* StateIn(uintptr_t leaf, uintptr_t granule) {
    auto* state = reinterpret_cast<Byte*>(leaf + granule - 1);
    if (state == nullptr) __builtin_unreachable();
    return state;
  }
  static size_t SpanCapacity(const void* start, GuardKind guard);
  // Returns the number of the 16 bytes that begin at an address, or more than all numbers for an
  // address that no block has.
  TCMALLOC_ALWAYS_INLINE static uintptr_t GranuleOf(const void* address) {
    // Bits that no address of a block has come last.
    return std::rotr(reinterpret_cast<uintptr_t>(address), kGranuleLog2);
  }
  Byte* FindHigh(const void* address) const;
  bool HasPart(size_t part) const;
  bool MapPart(size_t part);
  static size_t LeafBytes();
  uintptr_t MapLeaves();
  bool KeepAhead(uintptr_t leaves);
  bool MapAhead();
  uintptr_t TakeLeaf();
  TCMALLOC_COLD Byte* MakeLeaf(const void* block);
  TCMALLOC_COLD Byte* EnsureSlow(const void* block);

  // A leaf's address less that of its first granule's number, so that numbers index it; and one
  // more, so that it is not 0.
  std::atomic<uintptr_t>* root_ = nullptr;
  size_t low_leaves_ = 0;  // the entries that are mapped from the start; a multiple of kPartEntries
  bool may_grow_ = false;  // nothing else is where the other entries belong
  // The first of some leaves that lie in a row and are mapped ahead, and in the bits that are zero
  // in its address their number; or 0.
  std::atomic<uintptr_t> ahead_{0};
  std::atomic<size_t> mapped_leaves_{0};
  std::atomic<uint64_t> parts_[kParts / 64] = {};  // a bit for each part that is mapped
};

TCMALLOC_ALWAYS_INLINE void BlockMap::SetLongSlack(Byte* state, size_t slack, size_t capacity) {
  state[3].store(slack & 0x7f, std::memory_order_relaxed);
  if (capacity < kThreeSlackBytes) return;
  state[4].store(slack >> 7 & 0x7f, std::memory_order_relaxed);
  state[5].store(slack >> 14 & 0x7f, std::memory_order_relaxed);
}

TCMALLOC_ALWAYS_INLINE size_t BlockMap::GetLongSlack(const Byte* state, size_t capacity) {
  size_t slack = state[3].load(std::memory_order_relaxed);
  if (capacity < kThreeSlackBytes) return slack;
  slack |= size_t{state[4].load(std::memory_order_relaxed)} << 7;
  return slack | size_t{state[5].load(std::memory_order_relaxed)} << 14;
}

TCMALLOC_ALWAYS_INLINE void BlockMap::KeepSize(Byte* state, size_t size, size_t capacity) {
  SetLongSlack(state, capacity - size, capacity);
}

TCMALLOC_ALWAYS_INLINE size_t BlockMap::KeptSize(const Byte* state, size_t capacity) {
  return capacity - GetLongSlack(state, capacity);
}

TCMALLOC_ALWAYS_INLINE void BlockMap::Set(Byte* state, const LiveBlock& block) {
  const auto family = static_cast<uint8_t>(block.family);
  const size_t slack = block.capacity - block.size;
  if (block.size_class != 0 && block.capacity == kTinyBytes) {
    const size_t value = kLive + kFirstTiny + family * kTinySlacks + slack - 1;
    // Release pairs with the acquire in GuardFront.
    state->store(static_cast<uint8_t>(value), std::memory_order_release);
    return;
  }
  // A block with an alignment is seen by its long slack.
  const bool is_long =
      slack > kMostSlack || (block.log2_alignment != 0 && block.capacity > kShortBytes);
  uint8_t second = block.size_class;
  if (second == 0) second = kFirstSpan + static_cast<uint8_t>(block.guard);
  if (is_long && second == kClassOf32) {
    second = static_cast<uint8_t>(kShortOf32 + slack - kMostSlack - 1);
  }
  state[1].store(second, std::memory_order_relaxed);
  if (is_long && block.capacity == kThreeByteBytes) {
    state[2].store(static_cast<uint8_t>(slack), std::memory_order_relaxed);
  } else if (block.capacity > kShortBytes) {
    state[2].store(block.log2_alignment, std::memory_order_relaxed);
    if (is_long) SetLongSlack(state, slack, block.capacity);
  }
  const size_t code = is_long ? kLongSlack : slack;
  // Release pairs with the acquire in CheckLive: the bytes behind are there.
  state->store(static_cast<uint8_t>(kLive + family * kCodes + code), std::memory_order_release);
}

// Has as few branches as possible, because they would often be predicted wrong.
TCMALLOC_ALWAYS_INLINE bool BlockMap::GetPlain(const Byte* state, uint8_t live, BlockFamily family,
                                               uint8_t classes, PlainBlock* block) {
  const auto number = static_cast<uint8_t>(family);
  const auto code = static_cast<uint8_t>(live - kLive - number * kCodes);
  const auto tiny = static_cast<uint8_t>(live - kLive - kFirstTiny - number * kTinySlacks + 1);
  const bool is_tiny = code >= kCodes;
  const uint8_t second = state[1].load(std::memory_order_relaxed);
  block->size_class = is_tiny ? SizeClassFor(kTinyBytes) : second;
  block->slack = is_tiny ? tiny : code;
  if (TCMALLOC_UNLIKELY(block->slack > kMostSlack || block->size_class >= classes)) return false;
  block->capacity = kSizeClasses[block->size_class].size;
  if (TCMALLOC_LIKELY(block->slack != kLongSlack)) return !is_tiny || tiny <= kTinySlacks;
  block->slack = GetLongSlack(state, block->capacity);
  return !is_tiny && state[2].load(std::memory_order_relaxed) == 0;
}

TCMALLOC_ALWAYS_INLINE void BlockMap::SetPlain(Byte* state, BlockFamily family,
                                               const PlainBlock& block) {
  const auto number = static_cast<uint8_t>(family);
  const size_t base =
      block.capacity == kTinyBytes ? kFirstTiny + number * kTinySlacks - 1 : number * kCodes;
  size_t slack = block.slack;
  if (TCMALLOC_UNLIKELY(slack > kMostSlack)) {
    SetLongSlack(state, slack, block.capacity);
    slack = kLongSlack;
  }
  // Release pairs with the acquire in CheckLive: the bytes behind are there.
  state->store(static_cast<uint8_t>(kLive + base + slack), std::memory_order_release);
}

TCMALLOC_ALWAYS_INLINE bool BlockMap::GetShort(BlockFamily family, ShortBlock* block) {
  const auto number = static_cast<uint8_t>(family);
  // Less one, so that none becomes many.
  auto code = static_cast<uint8_t>(block->live - kLive - number * kCodes - 1);
  block->size_class = block->state[1].load(std::memory_order_relaxed);
  if (TCMALLOC_UNLIKELY(code >= kShortSlacks)) {
    code = static_cast<uint8_t>(block->live - kLive - kFirstTiny - number * kTinySlacks);
    if (TCMALLOC_UNLIKELY(code >= kTinySlacks)) return false;
    block->size_class = SizeClassFor(kTinyBytes);
  }
  block->slack = static_cast<uint8_t>(code + 1);
  return true;
}

TCMALLOC_ALWAYS_INLINE void BlockMap::SetShort(Byte* state, BlockFamily family,
                                               const ShortStates& states, size_t size) {
  const size_t value = states.first + static_cast<size_t>(family) * states.family - size % 16;
  // Release pairs with the acquire in GuardFront.
  state->store(static_cast<uint8_t>(value), std::memory_order_release);
}

TCMALLOC_ALWAYS_INLINE void BlockMap::MakePlain(Byte* state, uint8_t size_class) {
  const size_t capacity = kSizeClasses[size_class].size;
  if (capacity == kTinyBytes) return;
  state[1].store(size_class, std::memory_order_relaxed);
  if (capacity > kShortBytes) state[2].store(0, std::memory_order_relaxed);
}

TCMALLOC_ALWAYS_INLINE void BlockMap::MakeNew(Byte* state, uint8_t size_class) {
  if (state->load(std::memory_order_relaxed) == kQuarantined) {
    state->store(kFree, std::memory_order_relaxed);
  }
  MakePlain(state, size_class);
}

TCMALLOC_ALWAYS_INLINE LiveBlock BlockMap::Get(const void* start, const Byte* state, uint8_t live) {
  LiveBlock block;
  uint8_t value = live - kLive;
  if (value >= kFirstTiny) {
    value -= kFirstTiny;
    block.family = static_cast<BlockFamily>(value / kTinySlacks);
    block.capacity = kTinyBytes;
    block.size_class = SizeClassFor(kTinyBytes);
    block.size = kTinyBytes - 1 - value % kTinySlacks;
    return block;
  }
  block.family = static_cast<BlockFamily>(value / kCodes);
  size_t slack = value % kCodes;
  const uint8_t second = state[1].load(std::memory_order_relaxed);
  if (TCMALLOC_LIKELY(second < kShortOf32)) {
    block.size_class = second;
    block.capacity = kSizeClasses[second].size;
  } else if (second >= kFirstSpan) {
    block.guard = static_cast<GuardKind>(second - kFirstSpan);
    block.capacity = SpanCapacity(start, block.guard);
  } else {
    block.size_class = kClassOf32;
    block.capacity = kShortBytes;
    slack = second - kShortOf32 + kMostSlack + 1;
  }
  if (slack == kLongSlack && block.capacity == kThreeByteBytes) {
    slack = state[2].load(std::memory_order_relaxed);
  } else if (block.capacity > kShortBytes) {
    block.log2_alignment = state[2].load(std::memory_order_relaxed);
    if (slack == kLongSlack) slack = GetLongSlack(state, block.capacity);
  }
  block.size = block.capacity - slack;
  return block;
}

}  // namespace tcmalloc

#endif  // TCMALLOC_HARDENED_BLOCK_MAP_H_
