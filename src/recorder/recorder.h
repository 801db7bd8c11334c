// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Records every block and every mapping of the program.

#ifndef TCMALLOC_RECORDER_RECORDER_H_
#define TCMALLOC_RECORDER_RECORDER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/relaxed.h"
#include "recorder/block_table.h"
#include "recorder/recorded_mappings.h"
#include "recorder/recorded_stacks.h"

namespace tcmalloc {

// Is told of blocks and mappings by hooks, outside the slow path. The stack is captured there; the
// slow path is entered for the tables, so that no fork of another thread meets them halfway.
//
// A signal handler that interrupts a hook is not heard: its blocks are not recorded, and a block
// that it frees stays recorded until its address is used again.
//
// Thread safe. constinit and trivially destructible.
class Recorder {
 public:
  constexpr explicit Recorder(StackTable& stacks) : stacks_(stacks), mappings_(stacks_) {}
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Forgets everything and begins to listen. `quantum` is the power of two of bytes at which the
  // functions below return true. Start and Stop are not called at a time.
  void Start(int quantum);
  // Stops to listen and forgets the blocks and mappings.
  void Stop();
  bool running() const { return running_; }

  // Note what happened. They return true if the bytes of this thread, and of those that share its
  // counters, have passed a multiple of the quantum.
  bool NoteNew(const void* block, size_t bytes);
  bool NoteDelete(const void* block);
  bool NoteMapped(const void* start, size_t bytes);
  bool NoteUnmapped(const void* start, size_t bytes);

  // Sums over all threads since the start. Events of other threads meanwhile may be counted or not.
  struct Bytes {
    uint64_t allocated = 0;
    uint64_t freed = 0;
    uint64_t in_use() const { return allocated > freed ? allocated - freed : 0; }
  };
  Bytes bytes() const;

  const RecordedStacks& stacks() const { return stacks_; }
  size_t mapped_bytes() const { return blocks_.stats().mapped_bytes + stacks_.mapped_bytes(); }

 private:
  static constexpr int kStripeBits = 6;

  // The counters of the threads whose addresses have one hash.
  struct alignas(64) Stripe {
    std::atomic<uint64_t> allocated;
    std::atomic<uint64_t> freed;
  };

  Stripe& OwnStripe();
  bool Count(std::atomic<uint64_t>& counter, uint64_t bytes) const;
  void Forget();

  BlockTable blocks_;
  Stripe stripes_[1 << kStripeBits] = {};
  // Last are those with references, to which the dynamic linker writes, and what each process asks
  // for at its exit (src/libs/rare_text.ld).
  RecordedStacks stacks_;
  RecordedMappings mappings_;
  Relaxed<bool> running_ = false;
  Relaxed<int> quantum_ = 0;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_RECORDER_RECORDER_H_
