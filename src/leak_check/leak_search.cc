// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "leak_check/leak_search.h"

#include <algorithm>

#include "heap_profile/caller_stack.h"
#include "leak_check/row_table.h"

namespace tcmalloc {

bool LeakSearch::Run() {
  if (!maps_.Read() || !memory_.Read(maps_) || !CopyBlocks()) return false;
  data_.AddNewer(memory_);
  linker_ = data_.FindLinker(memory_);
  if (!index_.Build(blocks_.data(), block_count_)) return false;
  marker_.emplace(index_, memory_, request_.rules);
  if (!marker_->ok()) return false;
  MarkAll(&*marker_);
  CountLive();
  // Mappings are no leaks.
  const size_t reported = CountReported(*marker_);
  if (reported > 0) {
    marker_->SortLost();
    if (!CountLost(reported)) return false;
  }
  if (request_.try_other_rules && result_->lost_blocks > 0) TryOtherRules();
  return true;
}

bool LeakSearch::CopyBlocks() {
  const size_t most = request_.blocks->CountAtMost();
  blocks_ = Scratch<Block>(most + request_.mappings.size() + memory_.size());
  if (blocks_.data() == nullptr) return false;
  block_count_ = request_.blocks->Copy(blocks_.data(), most);
  SortByAddress(0, block_count_);
  const size_t mappings = block_count_;
  for (const Range& mapping : request_.mappings) {
    if (!Overlaps(mapping, 0, mappings)) AddMapping(mapping);
  }
  SortByAddress(mappings, block_count_);
  AddSharedMemory(mappings);
  return true;
}

void LeakSearch::SortByAddress(size_t begin, size_t end) {
  std::sort(blocks_.data() + begin, blocks_.data() + end,
            [](const Block& a, const Block& b) { return a.address < b.address; });
}

void LeakSearch::AddMapping(const Range& range) {
  blocks_[block_count_++] = {.address = range.begin, .bytes = range.bytes(), .is_mapping = true};
}

// Adds what the program shares with others without a call of mmap that was seen, for example by
// shmat. The heap has shared memory only where it is in a file, and the checker for its result,
// most of which is never touched.
void LeakSearch::AddSharedMemory(size_t mappings) {
  const size_t end = block_count_;
  const auto result = reinterpret_cast<uintptr_t>(result_);
  for (size_t i = 0; i < memory_.size(); ++i) {
    const MappedRange& entry = memory_[i];
    if (!entry.shared || !entry.readable || entry.range.Contains(result)) continue;
    if (Overlaps(entry.range, 0, mappings) || Overlaps(entry.range, mappings, end)) continue;
    AddMapping(entry.range);
  }
}

// Returns true if the range has a byte of the blocks from `begin` to `end`. A program may map
// memory for the heap as well.
bool LeakSearch::Overlaps(const Range& range, size_t begin, size_t end) const {
  const Block* first = blocks_.data() + begin;
  const Block* last = blocks_.data() + end;
  const Block* next = std::lower_bound(
      first, last, range.begin,
      [](const Block& block, uintptr_t address) { return block.address < address; });
  if (next != first && next[-1].address + next[-1].bytes > range.begin) return true;
  return next != last && next->address < range.end;
}

void LeakSearch::MarkAll(Marker* marker) {
  if (request_.global_roots) MarkFromData(data_, marker);
  if (request_.thread_roots) MarkFromThreads(marker);
  for (const Range& region : request_.root_regions) marker->MarkFrom(region);
  for (const uintptr_t word : request_.live_words) marker->MarkAddress(word);
  MarkChosenBlocks(marker);
}

void LeakSearch::MarkFromThreads(Marker* marker) {
  MarkFromThread({.first = threads_.IsFirst(threads_.self()),
                  .calls_checker = true,
                  .stack_pointer = request_.own_stack,
                  .thread_pointer = OwnThreadPointer(),
                  .registers = {}},
                 marker);
  const ThreadList list(threads_.self(), OwnThreadPointer(), memory_);
  for (size_t i = 0; i < threads_.size(); ++i) {
    const StoppedThread& thread = threads_[i];
    const uintptr_t told = thread.thread_pointer;
    MarkFromThread({.first = threads_.IsFirst(thread.id),
                    .stack_pointer = thread.stack_pointer,
                    .thread_pointer = told != 0 ? told : list.Find(thread.id),
                    .registers = {thread.registers_begin, thread.registers_end}},
                   marker);
  }
  MarkFromUnlistedThreads(list, marker);
}

// A thread that could not be held may have started others after they were listed.
void LeakSearch::MarkFromUnlistedThreads(const ThreadList& list, Marker* marker) {
  list.ForEach([&](pid_t number, uintptr_t pointer) {
    if (number == threads_.self() || threads_.Lists(number)) return;
    MarkFromThread({.first = threads_.IsFirst(number),
                    .stack_pointer = 0,
                    .thread_pointer = pointer,
                    .registers = {}},
                   marker);
  });
}

void LeakSearch::MarkFromThread(const ThreadPlace& thread, Marker* marker) {
  tcmalloc::MarkFromThread(thread, data_.static_tls_bytes(), memory_, index_, marker);
}

// The dynamic linker keeps blocks where only it finds them. Where this library is a part of the
// program, its own frames come before.
bool LeakSearch::IsOfLinker(std::span<const uintptr_t> frames) const {
  const MappedRange* own = memory_.Find(reinterpret_cast<uintptr_t>(&IsOwnCode));
  for (const uintptr_t frame : frames) {
    const MappedRange* mapping = memory_.Find(frame);
    if (mapping == nullptr || mapping != own) return linker_.Contains(frame);
  }
  return false;
}

void LeakSearch::MarkChosenBlocks(Marker* marker) {
  for (uint32_t i = 0; i < index_.size(); ++i) {
    const Block& block = index_[i];
    if (marker->state(i) == Marker::State::kReached) continue;
    if (block.is_mapping) {
      if (request_.mapping_roots) marker->MarkBlock(i);
      continue;
    }
    if (block.ignored || IsOfLinker(request_.blocks->Frames(block.stack))) marker->MarkBlock(i);
  }
  if (request_.filter != nullptr) MarkFiltered(marker);
}

// Each stack is shown to the filter once, if its names are small numbers.
void LeakSearch::MarkFiltered(Marker* marker) {
  constexpr uint8_t kKept = 1;
  constexpr uint8_t kLeftOut = 2;
  uint32_t most = 0;
  for (uint32_t i = 0; i < index_.size(); ++i) most = std::max(most, index_[i].stack);
  verdicts_ = Scratch<uint8_t>(size_t{most} + 1);
  if (verdicts_.data() == nullptr) return;
  for (uint32_t i = 0; i < index_.size(); ++i) {
    const Block& block = index_[i];
    if (block.is_mapping || marker->state(i) == Marker::State::kReached) continue;
    uint8_t& verdict = verdicts_[block.stack];
    if (verdict == 0) {
      const std::span<const uintptr_t> frames = request_.blocks->Frames(block.stack);
      verdict = request_.filter->LeavesOut(frames) ? kLeftOut : kKept;
    }
    if (verdict != kLeftOut) continue;
    marker->MarkBlock(i);
    result_->left_out_blocks += 1;
    result_->left_out_bytes += block.bytes;
  }
}

void LeakSearch::CountLive() {
  for (uint32_t i = 0; i < index_.size(); ++i) {
    if (index_[i].is_mapping) continue;
    result_->live_blocks += 1;
    result_->live_bytes += index_[i].bytes;
  }
}

bool LeakSearch::IsReported(const Marker& marker, uint32_t i) const {
  const Block& block = index_[i];
  return marker.state(i) != Marker::State::kReached && !block.is_mapping &&
         block.sequence >= request_.first_sequence;
}

size_t LeakSearch::CountReported(const Marker& marker) const {
  size_t count = 0;
  for (uint32_t i = 0; i < index_.size(); ++i) count += IsReported(marker, i) ? 1 : 0;
  return count;
}

bool LeakSearch::CountLost(size_t reported) {
  RowTable rows(result_, reported);
  if (!rows.ok()) return false;
  for (uint32_t i = 0; i < index_.size(); ++i) {
    if (!IsReported(*marker_, i)) continue;
    const Block& block = index_[i];
    const bool indirect = marker_->state(i) == Marker::State::kLostWithOther;
    rows.Add(block, indirect);
    result_->lost_blocks += 1;
    result_->lost_bytes += block.bytes;
    if (result_->listed_count < SnapshotResult::kMostListed) {
      result_->listed[result_->listed_count++] = {block.address, block.bytes, block.stack,
                                                  indirect};
    }
  }
  rows.Sort();
  return true;
}

uint64_t LeakSearch::CountLostUnder(const PointerRules& rules) {
  other_marker_.emplace(index_, memory_, rules);
  if (!other_marker_->ok()) return UINT64_MAX;
  MarkAll(&*other_marker_);
  return CountReported(*other_marker_);
}

void LeakSearch::TryOtherRules() {
  PointerRules unaligned = request_.rules;
  unaligned.source_alignment = 1;
  result_->lost_at_any_alignment = CountLostUnder(unaligned);
  PointerRules inside = request_.rules;
  inside.most_offset = UINT64_MAX;
  result_->lost_at_any_offset = CountLostUnder(inside);
  result_->tried_other_rules = true;
}

}  // namespace tcmalloc
