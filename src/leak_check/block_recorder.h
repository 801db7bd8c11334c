// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Records every block that the program allocates while the leak checker is on.

#ifndef TCMALLOC_LEAK_CHECK_BLOCK_RECORDER_H_
#define TCMALLOC_LEAK_CHECK_BLOCK_RECORDER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "leak_check/live_words.h"
#include "leak_check/search_request.h"
#include "recorder/block_table.h"

namespace tcmalloc {

// A table of all blocks, with the stacks of their allocations. Hooks keep it up to date: see
// hook/hooks.h. The functions are thread safe.
//
// Blocks of hooks, and of handlers that interrupt one, are recorded as well: none is missed. A
// handler that interrupts the slow path gets blocks of the emergency arena, which are not recorded,
// or in hardened mode such as wait in a list until the next hook, because the table may be locked
// by what was interrupted. These count as live, without a stack. Blocks that it frees wait
// likewise.
class BlockRecorder {
 public:
  constexpr BlockRecorder() = default;
  BlockRecorder(const BlockRecorder&) = delete;
  BlockRecorder& operator=(const BlockRecorder&) = delete;

  // Adds the hooks; from then on nothing is missed. Called when the options are known, before the
  // program gets its first block.
  void Start();
  bool started() const { return started_.load(std::memory_order_relaxed); }

  // Returns the number of the next allocation.
  uint64_t sequence() const { return sequence_.load(std::memory_order_relaxed); }

  // Between these, what the running thread allocates counts as live. They nest. Async-signal-safe.
  void BeginIgnoring();
  void EndIgnoring();

  // Called by the hooks.
  void NoteNew(const void* block, size_t bytes);
  void NoteDelete(const void* block);

  // Serve RecordedBlocks.
  size_t CountAtMost() const { return table_.stats().blocks + kSlack; }
  uint64_t Bytes() const { return table_.stats().bytes; }
  size_t Copy(Block* to, size_t most) const;
  std::span<const uintptr_t> Frames(uint32_t stack) const;

 private:
  // Blocks that may come while they are counted.
  static constexpr size_t kSlack = 4096;
  static constexpr size_t kMostIgnoring = 512;
  static constexpr size_t kMostUnrecorded = 256;
  static constexpr uint64_t kIgnored = uint64_t{1} << 63;

  // A thread that is between BeginIgnoring and EndIgnoring, by its thread pointer.
  struct Ignoring {
    std::atomic<uintptr_t> thread;
    std::atomic<uint32_t> depth;
  };

  // A block that was allocated, and is not yet in the table. Free if `bytes` is 0.
  struct Unrecorded {
    std::atomic<uintptr_t> address;
    std::atomic<uint64_t> bytes;  // and one more
  };

  Ignoring* FindIgnoring(uintptr_t thread);
  bool IsIgnoring();
  void Forget(const RecordedBlock& block);
  void NoteUnrecorded(uintptr_t address, size_t bytes);
  // Returns false if the block is not among them.
  bool RemoveUnrecorded(uintptr_t address);
  void RecordLate();
  void RemoveWaiting();
  // Puts the table in the state that it would have without signal handlers.
  void CatchUp();

  BlockTable table_;
  std::atomic<uint64_t> sequence_{1};
  std::atomic<bool> started_{false};
  std::atomic<uint32_t> ignoring_count_{0};
  Ignoring ignoring_[kMostIgnoring] = {};
  LiveWords<1024> waiting_;  // freed, and not yet removed
  std::atomic<uint32_t> waiting_count_{0};
  Unrecorded unrecorded_[kMostUnrecorded] = {};
  std::atomic<uint32_t> unrecorded_count_{0};
};

extern constinit BlockRecorder block_recorder;

// The blocks of a recorder. Apart from it, because the pointer to virtual functions would be a word
// of the recorder that the dynamic linker writes in every process.
class RecordedBlocks final : public BlockSource {
 public:
  explicit RecordedBlocks(const BlockRecorder& recorder) : recorder_(recorder) {}

  size_t CountAtMost() const override { return recorder_.CountAtMost(); }
  uint64_t Bytes() const override { return recorder_.Bytes(); }
  size_t Copy(Block* to, size_t most) const override { return recorder_.Copy(to, most); }
  std::span<const uintptr_t> Frames(uint32_t stack) const override {
    return recorder_.Frames(stack);
  }

 private:
  const BlockRecorder& recorder_;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_LEAK_CHECK_BLOCK_RECORDER_H_
