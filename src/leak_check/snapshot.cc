// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "leak_check/snapshot.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <new>

#include "heap_profile/caller_stack.h"
#include "leak_check/roots.h"
#include "leak_check/thread_list.h"
#include "system/clock.h"
#include "system/signal_mask.h"
#include "system/system_calls.h"

namespace tcmalloc {
namespace {

constinit ThreadStop thread_stop;

// Sums up lost blocks by their stacks.
class RowTable {
 public:
  // Of at most `blocks` blocks.
  RowTable(SnapshotResult* result, size_t blocks)
      : result_(result),
        places_(std::bit_ceil(2 * std::min<size_t>(blocks + 1, SnapshotResult::kMostRows))) {}

  bool ok() const { return places_.data() != nullptr; }

  void Add(const Block& block, bool indirect) {
    LostRow& row = RowOf(block.stack);
    (indirect ? row.indirect_objects : row.objects) += 1;
    (indirect ? row.indirect_bytes : row.bytes) += block.bytes;
  }

  void Sort() {
    std::sort(result_->rows, result_->rows + result_->row_count,
              [](const LostRow& a, const LostRow& b) {
                const uint64_t bytes_of_a = a.bytes + a.indirect_bytes;
                const uint64_t bytes_of_b = b.bytes + b.indirect_bytes;
                return bytes_of_a != bytes_of_b ? bytes_of_a > bytes_of_b : a.stack < b.stack;
              });
  }

 private:
  LostRow& RowOf(uint32_t stack) {
    const uint32_t count = result_->row_count;
    const size_t last = places_.size() - 1;
    size_t place = stack * uint64_t{0x9E3779B97F4A7C15} >> 32 & last;
    for (; places_[place] != 0; place = (place + 1) & last) {
      LostRow& row = result_->rows[places_[place] - 1];
      if (row.stack == stack) return row;
    }
    if (count == SnapshotResult::kMostRows) return result_->rows[count - 1];
    result_->rows[count] = LostRow{.stack = stack};
    result_->row_count = count + 1;
    places_[place] = count + 1;
    return result_->rows[count];
  }

  SnapshotResult* result_;
  Scratch<uint32_t> places_;  // one more than the index of a row
};

// The search for live blocks that the child makes.
class Search {
 public:
  Search(const SnapshotRequest& request, LoadedData& data, SnapshotResult* result)
      : request_(request), data_(data), result_(result) {}

  // Returns false if there was no memory for it.
  bool Run() {
    if (!memory_.Read() || !CopyBlocks()) return false;
    data_.AddNewer(memory_);
    if (!index_.Build(blocks_.data(), block_count_)) return false;
    Marker marker(index_, memory_, request_.rules);
    if (!marker.ok()) return false;
    MarkAll(&marker);
    CountLive();
    // Mappings that nothing leads to are gone through for what is lost alone.
    const size_t reported = CountReported(marker);
    if (reported > 0) {
      marker.SortLost();
      if (!CountLost(marker, reported)) return false;
    }
    if (request_.try_other_rules && result_->lost_blocks > 0) return TryOtherRules();
    return true;
  }

 private:
  bool CopyBlocks() {
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

  void SortByAddress(size_t begin, size_t end) {
    std::sort(blocks_.data() + begin, blocks_.data() + end,
              [](const Block& a, const Block& b) { return a.address < b.address; });
  }

  void AddMapping(const Range& range) {
    blocks_[block_count_++] = {.address = range.begin, .bytes = range.bytes(), .is_mapping = true};
  }

  // Adds what the program shares with others without a call of mmap that was seen, for example by
  // shmat. The heap has shared memory only where it is in a file, and the checker for its result,
  // most of which is never touched.
  void AddSharedMemory(size_t mappings) {
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
  bool Overlaps(const Range& range, size_t begin, size_t end) const {
    const Block* first = blocks_.data() + begin;
    const Block* last = blocks_.data() + end;
    const Block* next = std::lower_bound(
        first, last, range.begin,
        [](const Block& block, uintptr_t address) { return block.address < address; });
    if (next != first && next[-1].address + next[-1].bytes > range.begin) return true;
    return next != last && next->address < range.end;
  }

  void MarkAll(Marker* marker) {
    if (request_.global_roots) MarkFromData(data_, marker);
    if (request_.thread_roots) MarkFromThreads(marker);
    for (const Range& region : request_.root_regions) marker->MarkFrom(region);
    for (const uintptr_t word : request_.live_words) marker->MarkAddress(word);
    MarkChosenBlocks(marker);
  }

  void MarkFromThreads(Marker* marker) {
    MarkFromThread({.first = thread_stop.IsFirst(thread_stop.self()),
                    .calls_checker = true,
                    .stack_pointer = request_.own_stack,
                    .thread_pointer = OwnThreadPointer(),
                    .registers = {}},
                   marker);
    const ThreadList list(thread_stop.self(), OwnThreadPointer(), memory_);
    for (size_t i = 0; i < thread_stop.size(); ++i) {
      const StoppedThread& thread = thread_stop[i];
      const uintptr_t told = thread.thread_pointer;
      MarkFromThread({.first = thread_stop.IsFirst(thread.id),
                      .stack_pointer = thread.stack_pointer,
                      .thread_pointer = told != 0 ? told : list.Find(thread.id),
                      .registers = {thread.registers_begin, thread.registers_end}},
                     marker);
    }
    MarkFromUnlistedThreads(list, marker);
  }

  // A thread that could not be held may have started others after they were listed.
  void MarkFromUnlistedThreads(const ThreadList& list, Marker* marker) {
    list.ForEach([&](pid_t number, uintptr_t pointer) {
      if (number == thread_stop.self() || thread_stop.Lists(number)) return;
      MarkFromThread({.first = thread_stop.IsFirst(number),
                      .stack_pointer = 0,
                      .thread_pointer = pointer,
                      .registers = {}},
                     marker);
    });
  }

  void MarkFromThread(const ThreadPlace& thread, Marker* marker) {
    tcmalloc::MarkFromThread(thread, data_.static_tls_bytes(), memory_, index_, marker);
  }

  // The dynamic linker keeps blocks where only it finds them. Where this library is a part of the
  // program, its own frames come before.
  bool IsOfLinker(std::span<const uintptr_t> frames) const {
    const MappedRange* own = memory_.Find(reinterpret_cast<uintptr_t>(&IsOwnCode));
    for (const uintptr_t frame : frames) {
      const MappedRange* mapping = memory_.Find(frame);
      if (mapping == nullptr || mapping != own) return mapping != nullptr && mapping->of_linker;
    }
    return false;
  }

  void MarkChosenBlocks(Marker* marker) {
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
  void MarkFiltered(Marker* marker) {
    constexpr uint8_t kKept = 1;
    constexpr uint8_t kLeftOut = 2;
    uint32_t most = 0;
    for (uint32_t i = 0; i < index_.size(); ++i) most = std::max(most, index_[i].stack);
    const Scratch<uint8_t> verdicts(size_t{most} + 1);
    if (verdicts.data() == nullptr) return;
    for (uint32_t i = 0; i < index_.size(); ++i) {
      const Block& block = index_[i];
      if (block.is_mapping || marker->state(i) == Marker::State::kReached) continue;
      uint8_t& verdict = verdicts[block.stack];
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

  void CountLive() {
    for (uint32_t i = 0; i < index_.size(); ++i) {
      if (index_[i].is_mapping) continue;
      result_->live_blocks += 1;
      result_->live_bytes += index_[i].bytes;
    }
  }

  bool IsReported(const Marker& marker, uint32_t i) const {
    const Block& block = index_[i];
    return marker.state(i) != Marker::State::kReached && !block.is_mapping &&
           block.sequence >= request_.first_sequence;
  }

  size_t CountReported(const Marker& marker) const {
    size_t count = 0;
    for (uint32_t i = 0; i < index_.size(); ++i) count += IsReported(marker, i) ? 1 : 0;
    return count;
  }

  bool CountLost(const Marker& marker, size_t reported) {
    RowTable rows(result_, reported);
    if (!rows.ok()) return false;
    for (uint32_t i = 0; i < index_.size(); ++i) {
      if (!IsReported(marker, i)) continue;
      const Block& block = index_[i];
      const bool indirect = marker.state(i) == Marker::State::kLostWithOther;
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

  uint64_t CountLostUnder(const PointerRules& rules) {
    Marker marker(index_, memory_, rules);
    if (!marker.ok()) return UINT64_MAX;
    MarkAll(&marker);
    return CountReported(marker);
  }

  bool TryOtherRules() {
    PointerRules unaligned = request_.rules;
    unaligned.source_alignment = 1;
    result_->lost_at_any_alignment = CountLostUnder(unaligned);
    PointerRules inside = request_.rules;
    inside.most_offset = UINT64_MAX;
    result_->lost_at_any_offset = CountLostUnder(inside);
    result_->tried_other_rules = true;
    return true;
  }

  const SnapshotRequest& request_;
  LoadedData& data_;
  SnapshotResult* result_;
  MemoryMap memory_;
  Scratch<Block> blocks_;
  size_t block_count_ = 0;
  BlockIndex index_;
};

// The child's task, in memory of which the child has a copy.
struct Task {
  const SnapshotRequest* request;
  LoadedData* data;
  SnapshotResult* result;
};

// A fault ends the child by its default action; the program's handlers are not called.
void RestoreFaults() {
  struct sigaction action = {};
  action.sa_handler = SIG_DFL;
  for (const int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT, SIGSYS}) {
    ::sigaction(signal, &action, nullptr);
  }
}

void RunChild(void* argument) {
  const Task& task = *static_cast<const Task*>(argument);
  RestoreFaults();
  const int64_t start = MonotonicNanoseconds();
  Search search(*task.request, *task.data, task.result);
  const bool complete = search.Run();
  task.result->child_ns = MonotonicNanoseconds() - start;
  task.result->complete = complete;
}

pid_t Fork(Task* task) {
  // Without an exit signal the child is invisible to the program's own wait.
  const pid_t child = system_calls.clone(0, nullptr, RunChild, task);
  const int error = errno;
  thread_stop.Resume();
  errno = error;
  return child;
}

bool AwaitChild(pid_t child) {
  int status = 0;
  while (system_calls.wait4(child, &status, __WALL) < 0) {
    // Somebody who ignores SIGCHLD does not matter, because the child sends none.
    if (errno != EINTR) return true;
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

SnapshotResult* NewResult() {
  void* memory = system_calls.mmap(nullptr, sizeof(SnapshotResult), PROT_READ | PROT_WRITE,
                                   MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<SnapshotResult*>(memory);
}

void DeleteResult(SnapshotResult* result) {
  if (result != nullptr) system_calls.munmap(result, sizeof(SnapshotResult));
}

SnapshotOutcome TakeSnapshot(const SnapshotRequest& request, SnapshotResult* result) {
  LoadedData data;
  data.Collect();
  Task task = {&request, &data, result};
  if (!thread_stop.Reserve()) return SnapshotOutcome::kNoMemory;
  const int64_t begin = MonotonicNanoseconds();
  if (!thread_stop.Stop()) return SnapshotOutcome::kNoThreads;
  result->threads = static_cast<uint32_t>(thread_stop.size());
  for (size_t i = 0; i < thread_stop.size(); ++i) {
    result->held_threads += thread_stop[i].held.load(std::memory_order_relaxed);
  }
  const pid_t child = Fork(&task);
  result->pause_ns = MonotonicNanoseconds() - begin;
  if (child < 0) return SnapshotOutcome::kNoFork;
  return AwaitChild(child) && result->complete ? SnapshotOutcome::kDone
                                               : SnapshotOutcome::kChildFailed;
}

}  // namespace tcmalloc
