// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "guarded/guarded_blocks.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "base/bits.h"
#include "base/message.h"
#include "base/random.h"
#include "central/corruption.h"
#include "heap/heap.h"
#include "heap/mode.h"
#include "system/auxv.h"
#include "system/own_memory.h"
#include "system/random.h"
#include "system/system_calls.h"

namespace tcmalloc {
namespace {

// Fills what a block leaves of its page.
constexpr unsigned char kSlackByte = 0xbb;

// Bytes that a deferred free may write to the beginning of a block: its link.
constexpr size_t kLinkBytes = sizeof(void*);

size_t AlignmentFor(size_t size, size_t alignment) {
  constexpr size_t kMinAlignment = 16;
  return std::max(alignment, size >= kMinAlignment ? kMinAlignment : sizeof(void*));
}

[[noreturn]] TCMALLOC_COLD void CrashOnWrittenSlack(const GuardedSlot* slot,
                                                    const unsigned char* byte) {
  const auto address = reinterpret_cast<uintptr_t>(byte);
  const auto* block = reinterpret_cast<const void*>(slot->begin);
  const bool behind = address >= slot->begin;
  const uint64_t distance = behind ? address - slot->end() + 1 : slot->begin - address;
  Message message;
  message << (behind ? "overflow" : "underflow") << " of the block of " << uint64_t{slot->size}
          << " bytes at " << block << ": byte " << distance << (behind ? " behind" : " before")
          << " it was written";
  CrashOnMisuse(message, block);
}

// Returns the first byte of [from, to) that was written, or null.
const unsigned char* FindWritten(uintptr_t from, uintptr_t to) {
  const auto* begin = reinterpret_cast<const unsigned char*>(from);
  const auto* end = reinterpret_cast<const unsigned char*>(to);
  if (begin == end) return nullptr;
  // All bytes are as the one before them.
  if (*begin == kSlackByte && std::memcmp(begin, begin + 1, to - from - 1) == 0) return nullptr;
  for (const unsigned char* byte = begin; byte < end; ++byte) {
    if (*byte != kSlackByte) return byte;
  }
  return nullptr;
}

}  // namespace

constinit GuardedBlocks guarded_blocks;

void GuardedStack::Set(std::span<void* const> new_frames) {
  count = static_cast<uint32_t>(std::min(new_frames.size(), kMostFrames));
  std::copy_n(new_frames.begin(), count, frames);
  thread = static_cast<uint32_t>(system_calls.gettid());
}

void GuardedBlocks::Configure(const Options& options) {
  slot_count_ = options.guarded_slots;
  random_ = RandomSeed(reinterpret_cast<uintptr_t>(this));
  // The other modes check every block, and know those of the allocator below alone: the debug mode
  // fills what the class of a block has behind it.
  if (options.mode != ModeOption::kDefault || ModesOfLibrary().always_debug) {
    SpinLockHolder holder(lock_);
    failed_ = true;
  }
  if (options.guarded_sample_parameter < 0) return;
  set_interval(options.guarded_sample_parameter);
  Activate();
}

int64_t GuardedBlocks::interval() const {
  if (interval_is_set_) return interval_;
  return kSamplesPerGuarded * static_cast<int64_t>(heap.sample_period());
}

// Draws with the probability that makes the guarded blocks of a Poisson process of samples one of
// the interval's own.
bool GuardedBlocks::IsChosen(uint64_t period) {
  const int64_t wanted = interval();
  if (wanted < 0) return false;
  const uint64_t random = NextRandom(random_);
  random_ = random;
  const double uniform = static_cast<double>(random >> 11) * 0x1p-53;
  return uniform * static_cast<double>(wanted) < static_cast<double>(period);
}

// Maps the pages and the slots, when the first block is to be guarded.
bool GuardedBlocks::EnsureMapped() {
  if (slots_ != nullptr || failed_) return !failed_;
  page_bytes_ = KernelPageSize();
  const size_t bytes = (2 * slot_count_ + 1) * page_bytes_;
  const size_t slot_bytes = AlignUp(slot_count_ * sizeof(GuardedSlot), page_bytes_);
  void* pages = system_calls.mmap(nullptr, bytes, PROT_NONE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  void* slots = MapZeroed(slot_bytes);
  failed_ = pages == MAP_FAILED || slots == nullptr;
  if (failed_) {
    if (pages != MAP_FAILED) system_calls.munmap(pages, bytes);
    if (slots != nullptr) UnmapZeroed(slots, slot_bytes);
    return false;
  }
  // Pages from the kernel are zero, which makes valid slots that are unused.
  slots_ = static_cast<GuardedSlot*>(slots);
  for (size_t i = 0; i < slot_count_; ++i) {
    slots_[i].next_free = i + 1 < slot_count_ ? static_cast<uint16_t>(i + 1) : kNoSlot;
  }
  first_free_ = 0;
  last_free_ = static_cast<uint16_t>(slot_count_ - 1);
  heap.guarded().Set(reinterpret_cast<uintptr_t>(pages), bytes);
  return true;
}

GuardedSlot* GuardedBlocks::TakeSlot() {
  SpinLockHolder holder(lock_);
  if (!EnsureMapped() || first_free_ == kNoSlot) return nullptr;
  GuardedSlot* slot = &slots_[first_free_];
  first_free_ = slot->next_free;
  if (first_free_ == kNoSlot) last_free_ = kNoSlot;
  return slot;
}

void GuardedBlocks::ReturnSlot(GuardedSlot* slot) {
  const auto index = static_cast<uint16_t>(slot - slots_);
  SpinLockHolder holder(lock_);
  slot->next_free = kNoSlot;
  if (last_free_ != kNoSlot) {
    slots_[last_free_].next_free = index;
  } else {
    first_free_ = index;
  }
  last_free_ = index;
}

char* GuardedBlocks::PageOf(const GuardedSlot* slot) const {
  const auto index = static_cast<size_t>(slot - slots_);
  return reinterpret_cast<char*>(heap.guarded().begin() + (2 * index + 1) * page_bytes_);
}

// Returns the slot in whose page an address of the range lies, or null for a guard page.
GuardedSlot* GuardedBlocks::SlotAt(uintptr_t address) const {
  const size_t page = (address - heap.guarded().begin()) / page_bytes_;
  return page % 2 == 1 ? &slots_[page / 2] : nullptr;
}

void* GuardedBlocks::NewChosen(size_t size, size_t alignment) {
  const size_t aligned_size = AlignUp(std::max(size, size_t{1}), AlignmentFor(size, alignment));
  GuardedSlot* slot = nullptr;
  if (aligned_size <= KernelPageSize()) slot = TakeSlot();
  if (slot == nullptr) return nullptr;
  char* page = PageOf(slot);
  if (system_calls.mprotect(page, page_bytes_, PROT_READ | PROT_WRITE) != 0) {
    ReturnSlot(slot);
    return nullptr;
  }
  std::memset(page, kSlackByte, page_bytes_);
  // An access behind the block faults where its end meets the page's, one before it where the
  // beginnings meet: in turn.
  const bool at_end = guarded_.fetch_add(1, std::memory_order_relaxed) % 2 == 0;
  char* block = at_end ? page + (page_bytes_ - aligned_size) : page;
  slot->begin = reinterpret_cast<uintptr_t>(block);
  slot->size = size;
  slot->sample = 0;
  slot->allocated.count = 0;
  slot->freed.count = 0;
  slot->reported.store(false, std::memory_order_relaxed);
  slot->state.store(GuardedSlot::State::kLive, std::memory_order_relaxed);
  return block;
}

void GuardedBlocks::SetSample(const void* block, SampleId sample, std::span<void* const> frames) {
  GuardedSlot* slot = SlotAt(reinterpret_cast<uintptr_t>(block));
  slot->sample = sample;
  slot->allocated.Set(frames);
}

// Returns the slot of a live block, or ends the process.
GuardedSlot* GuardedBlocks::LiveSlot(const void* block, const char* call) const {
  const auto address = reinterpret_cast<uintptr_t>(block);
  GuardedSlot* slot = SlotAt(address);
  if (slot == nullptr) slot = FindNearest(address);
  if (slot == nullptr) CrashOnUnknownBlock(block, call);
  const GuardedSlot::State state = slot->state.load(std::memory_order_relaxed);
  if (state == GuardedSlot::State::kUnused) CrashOnUnknownBlock(block, call);
  if (slot->begin != address) {
    const auto* start = reinterpret_cast<const void*>(slot->begin);
    if (address - slot->begin < slot->size) CrashOnInterior(block, start, slot->size, call);
    Message message;
    message << "invalid free of " << block << ": it lies beside the block at " << start << " ("
            << uint64_t{slot->size} << " bytes)" << NoticedBy(call);
    CrashOnMisuse(message, start);
  }
  if (state == GuardedSlot::State::kFreed) CrashOnDoubleFree(block, slot->size, call);
  return slot;
}

// Ends the process if bytes of the page that are not the block's were written.
void GuardedBlocks::CheckSlack(const GuardedSlot* slot) const {
  const auto page = reinterpret_cast<uintptr_t>(PageOf(slot));
  const unsigned char* written = FindWritten(page, slot->begin);
  if (written == nullptr) {
    written = FindWritten(slot->begin + std::max(slot->size, kLinkBytes), page + page_bytes_);
  }
  if (TCMALLOC_UNLIKELY(written != nullptr)) CrashOnWrittenSlack(slot, written);
}

SampleId GuardedBlocks::Delete(const void* block, std::span<void* const> frames) {
  GuardedSlot* slot = LiveSlot(block, nullptr);
  GuardedSlot::State live = GuardedSlot::State::kLive;
  if (!slot->state.compare_exchange_strong(live, GuardedSlot::State::kFreed,
                                           std::memory_order_relaxed)) {
    CrashOnDoubleFree(block, slot->size);
  }
  slot->freed.Set(frames);
  CheckSlack(slot);
  const SampleId sample = slot->sample;
  char* page = PageOf(slot);
  // If the kernel refuses, uses of the freed block are not noticed.
  system_calls.mprotect(page, page_bytes_, PROT_NONE);
  system_calls.madvise(page, page_bytes_, MADV_DONTNEED);
  ReturnSlot(slot);
  return sample;
}

size_t GuardedBlocks::SizeOf(const void* block, const char* call) const {
  return LiveSlot(block, call)->size;
}

GuardedSlot* GuardedBlocks::FindNearest(uintptr_t address) const {
  const auto has_had_block = [](const GuardedSlot& slot) {
    return slot.state.load(std::memory_order_relaxed) != GuardedSlot::State::kUnused;
  };
  if (GuardedSlot* slot = SlotAt(address)) return has_had_block(*slot) ? slot : nullptr;
  const size_t next = (address - heap.guarded().begin()) / page_bytes_ / 2;
  GuardedSlot* before = next > 0 && has_had_block(slots_[next - 1]) ? &slots_[next - 1] : nullptr;
  GuardedSlot* behind = next < slot_count_ && has_had_block(slots_[next]) ? &slots_[next] : nullptr;
  if (before == nullptr || behind == nullptr) return before != nullptr ? before : behind;
  return address - before->end() < behind->begin - address ? before : behind;
}

}  // namespace tcmalloc
