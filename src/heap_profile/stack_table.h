// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Call stacks, each stored once.

#ifndef TCMALLOC_HEAP_PROFILE_STACK_TABLE_H_
#define TCMALLOC_HEAP_PROFILE_STACK_TABLE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/relaxed.h"
#include "heap_profile/chunked_array.h"
#include "heap_profile/free_indices.h"
#include "heap_profile/stack_buckets.h"

namespace tcmalloc {

// Names a stack of a StackTable; 0 names none.
using StackId = uint32_t;

// Every StackId is a multiple of it.
inline constexpr uint32_t kStackIdStep = 8;

// The most frames of a stack.
inline constexpr uint32_t kMostFrames = 64;

struct StackTableStats {
  size_t stacks = 0;  // with a reference
  size_t bytes = 0;   // that all stacks ever needed at once
  size_t mapped_bytes = 0;
};

// A hash table of counted call stacks. Stacks lie in an array of words that never moves, and name
// each other by index, so that another process can read them.
//
// A stack whose last reference goes stays in its bucket, where an equal stack may find it again. A
// sweep removes such stacks once they are many. Their words are used again when nobody is reading:
// each search and each Reader counts while it runs, and the sweep waits for a moment without any.
// A child of fork calls ForgetReaders, because those of other threads never end there.
//
// Thread safe, without a lock; async-signal-safe.
class StackTable {
 public:
  constexpr StackTable() = default;
  StackTable(const StackTable&) = delete;
  StackTable& operator=(const StackTable&) = delete;

  // Returns the name of a stack of at most kMostFrames frames, with a reference more. Returns 0 if
  // no memory can be had. Two threads that add a new stack in the moment in which the table gets
  // more buckets may get different names.
  StackId Add(std::span<void* const> frames);
  // Returns the name of a stack without frames, which may get up to kMostFrames by Close, with a
  // reference. No search finds it before. Returns 0 if no memory can be had.
  StackId NewOpen();
  // Makes an open stack to which only the caller has a reference ready for another use. Returns
  // false if somebody else has one, or may be about to take one.
  bool Reopen(StackId id);
  // Returns true if a stack to which somebody has a reference has no other.
  bool HasOneReference(StackId id) const { return refs(id).load(std::memory_order_relaxed) == 1; }
  // Adds a reference to a stack to which the caller has one.
  void AddReference(StackId id) { refs(id).fetch_add(1, std::memory_order_relaxed); }
  // Gives an open stack its frames. Called once, by a caller with a reference.
  void Close(StackId id, std::span<void* const> frames);
  // Takes references back.
  void Release(StackId id, uint32_t count = 1);
  // Returns the frames of a stack to which the caller has a reference, innermost first.
  std::span<const uintptr_t> FramesOfHeld(StackId id) const { return Frames(id); }
  // Adds references to a stack that had one when the caller's Reader began. Returns false if it
  // has gone since.
  [[nodiscard]] bool Retain(StackId id, uint32_t count = 1);

  // The scope in which frames may be read.
  class Reader {
   public:
    explicit Reader(StackTable& table)
        : table_(table), generation_(table.generation_.load(std::memory_order_relaxed)) {
      // Pairs with the load in Sweep: a sweep that does not see this reader is seen by it.
      table_.readers_.fetch_add(1, std::memory_order_seq_cst);
    }
    ~Reader() {
      if (generation_ != table_.generation_.load(std::memory_order_relaxed)) return;
      // Release pairs with the load in Sweep: what the reader did comes before the words are used
      // again.
      table_.readers_.fetch_sub(1, std::memory_order_release);
    }
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;

    // Returns the frames of a stack that had a reference when this scope had begun, innermost
    // first. They are valid as long as the scope.
    std::span<const uintptr_t> frames(StackId id) const { return table_.Frames(id); }
    // Returns the one that stands for all stacks with the frames of `id`, of which there may be
    // several after Close.
    StackId FirstEqual(StackId id) const { return table_.FirstEqual(id); }

   private:
    StackTable& table_;
    uint32_t generation_;  // of readers
  };

  // Ends all readers. Called in the child of a fork, by its only thread. A reader of that thread
  // may find other frames from now on.
  void ForgetReaders() {
    generation_.fetch_add(1, std::memory_order_relaxed);
    readers_.store(0, std::memory_order_relaxed);
  }

  StackTableStats stats() const;

 private:
  // A stack of n frames takes kHeaderWords + n words, rounded up to a multiple of kStepWords:
  //
  //     word 0          hash, and the number of frames in the upper half
  //     word 1          next in the bucket, and the references in the upper half
  //     word 2 to n + 1 frames
  static constexpr uint32_t kHeaderWords = 2;
  static constexpr uint32_t kStepWords = kStackIdStep;
  static constexpr uint32_t kSizes = (kHeaderWords + kMostFrames + kStepWords - 1) / kStepWords;
  // Enough for three open stacks, which is what small programs need.
  static constexpr uint32_t kFirstWords = 1 << 8;
  // Added to the number of frames of a stack that has words for kMostFrames.
  static constexpr uint32_t kHasAllWords = uint32_t{1} << 31;
  // The references of a stack that a sweep has removed.
  static constexpr uint32_t kRemoved = UINT32_MAX;
  // Fewer stacks without references do not make a sweep worth it.
  static constexpr uint32_t kLeastUnused = 1024;
  // The most words in all.
  static constexpr uint32_t kMostWords = 1 << 24;

  struct Word {
    std::atomic<uint32_t> low;
    std::atomic<uint32_t> high;
  };
  static_assert(sizeof(Word) == sizeof(uintptr_t));

  std::atomic<uint32_t>& hash(StackId id) const { return words_[id].low; }
  std::atomic<uint32_t>& count(StackId id) const { return words_[id].high; }
  std::atomic<uint32_t>& next(StackId id) const { return words_[id + 1].low; }
  std::atomic<uint32_t>& refs(StackId id) const { return words_[id + 1].high; }
  // The word through which removed and free stacks are linked, in place of the hash, which no
  // search needs then. Readers may still read the frames of a removed stack.
  std::atomic<uint32_t>& free_link(StackId id) const { return hash(id); }
  uintptr_t* frame_words(StackId id) const {
    return reinterpret_cast<uintptr_t*>(&words_[id + kHeaderWords]);
  }
  static uint32_t SizeFor(size_t frames) {
    return static_cast<uint32_t>((kHeaderWords + frames + kStepWords - 1) / kStepWords);
  }
  bool WasOpen(StackId id) const {
    return (count(id).load(std::memory_order_relaxed) & kHasAllWords) != 0;
  }
  uint32_t SizeOf(StackId id) const {
    return SizeFor(WasOpen(id) ? kMostFrames : count(id).load(std::memory_order_relaxed));
  }

  std::span<const uintptr_t> Frames(StackId id) const {
    // Acquire pairs with the release in Close and publishes the frames.
    return {frame_words(id), count(id).load(std::memory_order_acquire) & ~kHasAllWords};
  }
  bool Equals(StackId id, uint32_t hash_of, std::span<void* const> frames) const;
  StackId FirstEqual(StackId id);
  StackId Find(StackId from, StackId end, uint32_t hash_of, std::span<void* const> frames);
  StackId FindBelow(int level, uint32_t hash_of, std::span<void* const> frames);
  void DropNew(StackId id);
  void SetFrames(StackId id, std::span<void* const> frames);
  StackId NewStack(uint32_t hash_of, std::span<void* const> frames);
  StackId TakeWords(uint32_t size);
  void GrowIfWorthIt();
  void SweepIfWorthIt();
  void Sweep();
  std::atomic<uint32_t>* LinkTo(StackId id, StackId from) const;
  StackId SweepBucket(StackBuckets::Bucket& bucket, StackId removed);
  void FreeAll(StackId removed);

  // First, because a process whose stacks are all open does not touch it (src/libs/rare_text.ld).
  StackBuckets buckets_;
  ChunkedArray<Word, kFirstWords, FirstChunk::kInside> words_;
  std::atomic<uint32_t> used_{0};  // words that a stack ever had, from kStepWords on
  FreeIndices free_[kSizes + 1];
  std::atomic<uint32_t> stacks_{0};  // with a reference
  std::atomic<uint32_t> unused_{0};  // in a bucket, without one
  std::atomic<int32_t> readers_{0};
  std::atomic<uint32_t> generation_{0};  // a child of fork begins another one
  std::atomic<bool> sweeping_{false};
  StackId removed_ = 0;  // by earlier sweeps, while somebody was reading; guarded by sweeping_
};

}  // namespace tcmalloc

#endif  // TCMALLOC_HEAP_PROFILE_STACK_TABLE_H_
