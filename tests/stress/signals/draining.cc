// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "stress/signals/draining.h"

#include <malloc.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "stress/signals/extension.h"
#include "stress/signals/ledger.h"
#include "stress/signals/stepped.h"

namespace tcmalloc::testing {
namespace {

// A size, and of how many blocks of it enough are freed that its class drains.
struct Draining {
  size_t size;
  size_t blocks;
  // Of BeginToDrain, so many that the class still drains when its list is filled next.
  size_t rounds;
  // Before the one with which the class begins to drain.
  size_t frees = 0;
  // After BeginToDrain, before the one that fills the list again.
  size_t allocations = 0;
};
// Lists of some hundreds of objects, of some dozens, and of a few, which are counted as they leave.
// None is of less than a cache line: those may be exchanged for a line of the thread's own.
Draining small = {80, 2000, 40};
Draining middle = {2000, 320, 16};
Draining large = {200000, 64, 4};

// Blocks in use, which are freed in the order of their allocation. Operations need no ledger for
// them, which would be slow.
std::array<uint8_t*, 2200> blocks;
size_t first = 0;
size_t last = 0;

constexpr size_t kMarked = 48;  // bytes at the start of each block
constexpr uint8_t kMark = 0x5a;

void AllocateNext(size_t size) {
  auto* block = static_cast<uint8_t*>(std::malloc(size));
  if (block == nullptr || last == blocks.size()) EndWith(kNoMemory);
  std::memset(block, kMark, kMarked);
  blocks[last++] = block;
}
uint8_t* TakeNext() {
  uint8_t* block = blocks[first++];
  if (!std::all_of(block, block + kMarked, [](uint8_t b) { return b == kMark; })) {
    EndWith(kChanged);
  }
  return block;
}
void FreeNext() { std::free(TakeNext()); }

void Fill(const Draining& c) {
  Extension::ReleaseFreeMemory();
  while (last < c.blocks) AllocateNext(c.size);
}

void PrepareToDrain(const Draining& c) {
  Fill(c);
  for (size_t i = 0; i < c.frees; ++i) FreeNext();
}

// Frees so many for each allocation that the class drains for good.
constexpr size_t kFreesPerAllocation = 4;
void FreeAndAllocate(const Draining& c) {
  for (size_t i = 0; i < kFreesPerAllocation; ++i) FreeNext();
  AllocateNext(c.size);
}
void BeginToDrain(const Draining& c) {
  PrepareToDrain(c);
  FreeNext();
  AllocateNext(c.size);
  for (size_t i = 0; i < c.rounds; ++i) FreeAndAllocate(c);
}

// Leaves so many objects in the list of a class that drains.
void Drain(const Draining& c, size_t left) {
  BeginToDrain(c);
  for (size_t i = left; i < c.allocations; ++i) AllocateNext(c.size);
}

// Fills the list again after the last free, and leaves most of it.
void DrainAndRefill(const Draining& c) {
  BeginToDrain(c);
  for (size_t i = 0; i < c.allocations + 2; ++i) AllocateNext(c.size);
}

// A class that drains does not hand out what was freed last.
bool Drains(const Draining& c) {
  void* const freed = blocks[first];
  FreeNext();
  void* const block = std::malloc(c.size);
  std::free(block);
  return block != freed;
}

size_t FrontEndBytes() { return Extension::Property("tcmalloc.current_total_thread_cache_bytes"); }

// Makes a class so large that it may drain, by blocks that stay in use. Every second one goes, so
// that the spans have as much room as those of a class that shrinks.
void Enlarge(size_t size) {
  constexpr size_t kBytes = size_t{3} << 20;
  std::vector<void*> made(kBytes / size);
  for (void*& block : made) block = std::malloc(size);
  for (size_t i = 0; i < made.size(); i += 2) std::free(made[i]);
}

bool Learn(Draining* c) {
  Fill(*c);
  while (first < last && !Drains(*c)) ++c->frees;
  if (first == last) return false;
  FreeDraining();
  BeginToDrain(*c);
  for (size_t bytes = FrontEndBytes();; ++c->allocations) {
    AllocateNext(c->size);
    if (FrontEndBytes() >= bytes) break;
    bytes = FrontEndBytes();
  }
  FreeDraining();
  PrepareToDrain(*c);
  const bool drains = Drains(*c);
  FreeDraining();
  return drains;
}

// Each steps one call. Others follow, which show what it left.
void Allocate(const Draining& c) {
  void* block = AllocateStepped(c.size);
  void* another = ledger.Add(std::malloc(c.size), c.size);
  std::free(ledger.Remove(another));
  std::free(ledger.Remove(block));
}
void Free(const Draining& c) {
  FreeStepped(ledger.Add(TakeNext(), c.size));
  std::free(ledger.Remove(ledger.Add(std::malloc(c.size), c.size)));
}
// Many calls.
void GoOnDraining(const Draining& c) {
  while (first + kFreesPerAllocation < c.blocks) {
    void* block = AllocateStepped(c.size);
    for (size_t k = 1; k < kFreesPerAllocation; ++k) FreeStepped(ledger.Add(TakeNext(), c.size));
    FreeStepped(block);
  }
}

// Objects in a list, more than handlers take of one class.
constexpr size_t kSome = 3;

constexpr InterruptedOperation kOperations[] = {
    {"malloc, drains, small", [] { Drain(small, kSome); }, [] { Allocate(small); }},
    {"malloc, drains, small, last", [] { Drain(small, 1); }, [] { Allocate(small); }},
    {"malloc, drains, small, refilled", [] { DrainAndRefill(small); }, [] { Allocate(small); }},
    {"malloc, drains, small, refill", [] { Drain(small, 0); }, [] { Allocate(small); }},
    {"free, drains, small", [] { Drain(small, kSome); }, [] { Free(small); }},
    {"free, begins to drain, small", [] { PrepareToDrain(small); }, [] { Free(small); }},
    {"malloc, drains, middle", [] { Drain(middle, kSome); }, [] { Allocate(middle); }},
    {"malloc, drains, middle, last", [] { Drain(middle, 1); }, [] { Allocate(middle); }},
    {"malloc, drains, middle, refilled", [] { DrainAndRefill(middle); }, [] { Allocate(middle); }},
    {"malloc, drains, middle, refill", [] { Drain(middle, 0); }, [] { Allocate(middle); }},
    {"free, drains, middle", [] { Drain(middle, kSome); }, [] { Free(middle); }},
    {"free, begins to drain, middle", [] { PrepareToDrain(middle); }, [] { Free(middle); }},
    {"malloc, drains, large, refill", [] { Drain(large, 0); }, [] { Allocate(large); }},
    {"free, drains, large", [] { Drain(large, 0); }, [] { Free(large); }},
    {"free, begins to drain, large", [] { PrepareToDrain(large); }, [] { Free(large); }},
};
constexpr InterruptedOperation kLong[] = {
    {"goes on draining", [] { PrepareToDrain(middle); }, [] { GoOnDraining(middle); }},
};

}  // namespace

bool LearnToDrain() {
  for (const Draining& c : {small, middle, large}) Enlarge(c.size);
  return Learn(&small) && Learn(&middle) && Learn(&large) && small.allocations >= kSome &&
         middle.allocations >= kSome;
}

size_t DrainingBytes() {
  size_t bytes = 0;
  for (size_t i = first; i < last; ++i) bytes += ::malloc_usable_size(blocks[i]);
  return bytes;
}
void FreeDraining() {
  while (first < last) FreeNext();
  first = last = 0;
}

std::span<const InterruptedOperation> DrainingOperations() { return kOperations; }
std::span<const InterruptedOperation> LongDrainingOperations() { return kLong; }

}  // namespace tcmalloc::testing
