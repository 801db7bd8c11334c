// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "heap_profile/stack_table.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/random.h"

namespace tcmalloc {
namespace {

// One multiplication for each frame, because every capture comes here; the bits are spread once, at
// the end.
uint32_t HashOf(std::span<void* const> frames) {
  constexpr uint64_t kGolden = 0x9E37'79B9'7F4A'7C15;
  uint64_t hash = frames.size();
  for (void* frame : frames) {
    hash = std::rotl(hash ^ reinterpret_cast<uintptr_t>(frame), 23) * kGolden;
  }
  return static_cast<uint32_t>(NextRandom(hash) >> 32);
}

}  // namespace

bool StackTable::Equals(StackId id, uint32_t hash_of, std::span<void* const> frames) const {
  if (hash(id).load(std::memory_order_relaxed) != hash_of) return false;
  if (Frames(id).size() != frames.size()) return false;
  // An empty span may point to null, which memcmp must not get.
  return frames.empty() || std::memcmp(frames.data(), frame_words(id), frames.size_bytes()) == 0;
}

bool StackTable::Retain(StackId id, uint32_t count) {
  uint32_t held = refs(id).load(std::memory_order_relaxed);
  while (held != kRemoved) {
    if (refs(id).compare_exchange_weak(held, held + count, std::memory_order_relaxed)) {
      if (held == 0) {
        unused_.fetch_sub(1, std::memory_order_relaxed);
        stacks_.fetch_add(1, std::memory_order_relaxed);
      }
      return true;
    }
  }
  return false;
}

// Looks for an equal stack in a bucket, from `from` up to `end`. Returns it with a reference more,
// or 0.
StackId StackTable::Find(StackId from, StackId end, uint32_t hash_of,
                         std::span<void* const> frames) {
  // Acquire pairs with Add and SweepBucket and publishes the next stack.
  for (StackId id = from; id != end && id != 0; id = next(id).load(std::memory_order_acquire)) {
    if (refs(id).load(std::memory_order_relaxed) == kRemoved) continue;
    if (Equals(id, hash_of, frames) && Retain(id)) return id;
  }
  return 0;
}

// Looks for an equal stack in the buckets of the levels below `level`. Returns it with a reference
// more, or 0.
StackId StackTable::FindBelow(int level, uint32_t hash_of, std::span<void* const> frames) {
  while (--level >= 0) {
    // Acquire pairs with the release in Add and publishes the stack.
    const StackId head = buckets_.Of(level, hash_of).load(std::memory_order_acquire);
    if (const StackId found = Find(head, 0, hash_of, frames)) return found;
  }
  return 0;
}

// Of several equal stacks, one that was never open comes first.
StackId StackTable::FirstEqual(StackId id) {
  const std::span<const uintptr_t> words = Frames(id);
  if (!WasOpen(id) || words.empty()) return id;
  const std::span frames(reinterpret_cast<void* const*>(words.data()), words.size());
  const uint32_t hash_of = hash(id).load(std::memory_order_relaxed);
  StackId first = 0;
  for (int level = buckets_.newest(); level >= 0; --level) {
    // Acquire pairs with Add, Close and SweepBucket and publishes the next stack.
    StackId other = buckets_.Of(level, hash_of).load(std::memory_order_acquire);
    while (other != 0) {
      const bool removed = refs(other).load(std::memory_order_relaxed) == kRemoved;
      if (!removed && Equals(other, hash_of, frames)) {
        if (!WasOpen(other)) return other;
        if (first == 0) first = other;
      }
      // Acquire pairs with Add, Close and SweepBucket.
      other = next(other).load(std::memory_order_acquire);
    }
  }
  return first != 0 ? first : id;
}

// Returns the words for a stack, or 0 if no memory can be had. A stack lies in one chunk.
StackId StackTable::TakeWords(uint32_t size) {
  const auto link_of = [this](StackId id) -> std::atomic<uint32_t>& { return free_link(id); };
  if (const StackId id = free_[size].Pop(link_of)) return id;
  const uint32_t words = size * kStepWords;
  uint32_t used = used_.load(std::memory_order_relaxed);
  uint32_t begin = 0;
  do {
    begin = used + kStepWords;
    const int chunk = words_.ChunkOf(begin);
    if (words_.ChunkOf(begin + words - 1) != chunk) begin = words_.FirstIn(chunk + 1);
    if (begin + words > kMostWords || !words_.Ensure(begin + words - 1)) return 0;
  } while (
      !used_.compare_exchange_weak(used, begin + words - kStepWords, std::memory_order_relaxed));
  return begin;
}

void StackTable::SetFrames(StackId id, std::span<void* const> frames) {
  std::transform(frames.begin(), frames.end(), frame_words(id),
                 [](void* frame) { return reinterpret_cast<uintptr_t>(frame); });
}

// Returns a stack that no bucket has, with one reference.
StackId StackTable::NewStack(uint32_t hash_of, std::span<void* const> frames) {
  const StackId id = TakeWords(SizeFor(frames.size()));
  if (id == 0) return 0;
  hash(id).store(hash_of, std::memory_order_relaxed);
  count(id).store(static_cast<uint32_t>(frames.size()), std::memory_order_relaxed);
  refs(id).store(1, std::memory_order_relaxed);
  SetFrames(id, frames);
  stacks_.fetch_add(1, std::memory_order_relaxed);
  return id;
}

// Takes back a stack of NewStack, which nobody else has seen.
void StackTable::DropNew(StackId id) {
  stacks_.fetch_sub(1, std::memory_order_relaxed);
  const auto link_of = [this](StackId other) -> std::atomic<uint32_t>& { return free_link(other); };
  free_[SizeOf(id)].Push(id, link_of);
}

StackId StackTable::Add(std::span<void* const> frames) {
  const Reader reader(*this);
  const uint32_t hash_of = HashOf(frames);
  const int level = buckets_.newest();
  StackBuckets::Bucket& bucket = buckets_.Of(level, hash_of);
  // Acquire pairs with the release in Add and publishes the stack.
  StackId head = bucket.load(std::memory_order_acquire);
  if (const StackId found = Find(head, 0, hash_of, frames)) return found;
  if (const StackId found = FindBelow(level, hash_of, frames)) return found;
  const StackId added = NewStack(hash_of, frames);
  if (added == 0) return 0;
  StackId seen = head;
  next(added).store(head, std::memory_order_relaxed);
  // Release pairs with the acquire in Find and publishes the stack.
  while (!bucket.compare_exchange_weak(head, added, std::memory_order_release,
                                       std::memory_order_acquire)) {
    // Another thread may have added the same stack meanwhile.
    if (const StackId found = Find(head, seen, hash_of, frames)) {
      DropNew(added);
      return found;
    }
    seen = head;
    next(added).store(head, std::memory_order_relaxed);
  }
  GrowIfWorthIt();
  return added;
}

StackId StackTable::NewOpen() {
  const StackId id = TakeWords(SizeFor(kMostFrames));
  if (id == 0) return 0;
  count(id).store(kHasAllWords, std::memory_order_relaxed);
  refs(id).store(1, std::memory_order_relaxed);
  stacks_.fetch_add(1, std::memory_order_relaxed);
  return id;
}

bool StackTable::Reopen(StackId id) {
  uint32_t one = 1;
  // Acquire pairs with the release in StackTable::Release: the new use comes after all former ones.
  if (!refs(id).compare_exchange_strong(one, kRemoved, std::memory_order_acquire,
                                        std::memory_order_relaxed)) {
    return false;
  }
  // Pairs with Reader: whoever begins to read later does not find it.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  // Pairs with Reader: whoever had begun before is counted.
  const bool nobody_reads = readers_.load(std::memory_order_seq_cst) == 0;
  refs(id).store(1, std::memory_order_relaxed);
  return nobody_reads;
}

void StackTable::Close(StackId id, std::span<void* const> frames) {
  const uint32_t hash_of = HashOf(frames);
  SetFrames(id, frames);
  hash(id).store(hash_of, std::memory_order_relaxed);
  // Release pairs with the acquire in Frames and publishes the frames.
  count(id).store(static_cast<uint32_t>(frames.size()) | kHasAllWords, std::memory_order_release);
  StackBuckets::Bucket& bucket = buckets_.Of(buckets_.newest(), hash_of);
  StackId head = bucket.load(std::memory_order_relaxed);
  do {
    next(id).store(head, std::memory_order_relaxed);
    // Release pairs with the acquire in Find and publishes the stack.
  } while (!bucket.compare_exchange_weak(head, id, std::memory_order_release,
                                         std::memory_order_relaxed));
  GrowIfWorthIt();
}

void StackTable::GrowIfWorthIt() {
  buckets_.GrowFor(stacks_.load(std::memory_order_relaxed) +
                   unused_.load(std::memory_order_relaxed));
}

void StackTable::Release(StackId id, uint32_t count) {
  // Release pairs with the acquire in SweepBucket: whoever removes the stack comes after all uses.
  if (refs(id).fetch_sub(count, std::memory_order_release) != count) return;
  stacks_.fetch_sub(1, std::memory_order_relaxed);
  unused_.fetch_add(1, std::memory_order_relaxed);
  SweepIfWorthIt();
}

void StackTable::SweepIfWorthIt() {
  const uint32_t unused = unused_.load(std::memory_order_relaxed);
  if (unused < kLeastUnused || unused < stacks_.load(std::memory_order_relaxed)) return;
  // Acquire pairs with the release in SweepIfWorthIt, so that one sweep follows another.
  if (sweeping_.exchange(true, std::memory_order_acquire)) return;
  Sweep();
  // Release pairs with the acquire in SweepIfWorthIt.
  sweeping_.store(false, std::memory_order_release);
}

// Returns the link that leads to `id`, which follows `from` in its bucket.
std::atomic<uint32_t>* StackTable::LinkTo(StackId id, StackId from) const {
  while (true) {
    // Acquire pairs with the release in Add and publishes the stack.
    const StackId following = next(from).load(std::memory_order_acquire);
    if (following == id) return &next(from);
    from = following;
  }
}

// Takes the stacks without references out of a bucket and adds them to the list `removed`, which it
// returns. Others may add stacks at the head meanwhile, but nobody else removes any.
StackId StackTable::SweepBucket(StackBuckets::Bucket& bucket, StackId removed) {
  std::atomic<uint32_t>* link_to = &bucket;
  // Acquire pairs with the release in Add and publishes the stack.
  StackId id = link_to->load(std::memory_order_acquire);
  while (id != 0) {
    // Acquire pairs with the release in Add.
    const StackId following = next(id).load(std::memory_order_acquire);
    uint32_t none = 0;
    // Acquire pairs with the release in StackTable::Release.
    if (!refs(id).compare_exchange_strong(none, kRemoved, std::memory_order_acquire,
                                          std::memory_order_relaxed)) {
      link_to = &next(id);
      id = following;
      continue;
    }
    unused_.fetch_sub(1, std::memory_order_relaxed);
    StackId expected = id;
    // Release pairs with the acquire in Find.
    while (!link_to->compare_exchange_strong(expected, following, std::memory_order_release,
                                             std::memory_order_acquire)) {
      // Only at the head: stacks were added before this one.
      link_to = LinkTo(id, expected);
      expected = id;
    }
    free_link(id).store(removed, std::memory_order_relaxed);
    removed = id;
    id = following;
  }
  return removed;
}

void StackTable::FreeAll(StackId removed) {
  const auto link_of = [this](StackId id) -> std::atomic<uint32_t>& { return free_link(id); };
  while (removed != 0) {
    const StackId following = free_link(removed).load(std::memory_order_relaxed);
    free_[SizeOf(removed)].Push(removed, link_of);
    removed = following;
  }
}

void StackTable::Sweep() {
  buckets_.ForEach(
      [this](StackBuckets::Bucket& bucket) { removed_ = SweepBucket(bucket, removed_); });
  // Pairs with Reader: whoever begins to read later finds none of the removed stacks.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  // Pairs with Reader: whoever had begun before is counted.
  if (readers_.load(std::memory_order_seq_cst) != 0) return;
  FreeAll(removed_);
  removed_ = 0;
}

StackTableStats StackTable::stats() const {
  return {.stacks = stacks_.load(std::memory_order_relaxed),
          .bytes = size_t{used_.load(std::memory_order_relaxed)} * sizeof(Word),
          .mapped_bytes = words_.mapped_bytes() + buckets_.mapped_bytes()};
}

}  // namespace tcmalloc
