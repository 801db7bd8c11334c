// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Parts of a mode's data that a few threads have to themselves.

#ifndef TCMALLOC_THREAD_THREAD_PARTS_H_
#define TCMALLOC_THREAD_THREAD_PARTS_H_

#include <atomic>
#include <cstdint>

namespace tcmalloc {

// Says who has which part: a thread from its first call of the mode until it ends, or a call that
// looks after what ended threads left. Whoever takes a part finds it as it was left.
//
// In a child of fork the parts of the other threads stay taken, because these may have been in the
// middle of a change. So does the part of a thread that ends in the middle of one.
//
// Lock-free; async-signal-safe.
class ThreadParts {
 public:
  static constexpr uint8_t kCount = 8;

  // Returns true if a part has that number, which may be any.
  static constexpr bool IsPart(uint8_t number) { return static_cast<uint8_t>(number - 1) < kCount; }

  constexpr ThreadParts() = default;
  ThreadParts(const ThreadParts&) = delete;
  ThreadParts& operator=(const ThreadParts&) = delete;

  // Returns the number of a part that nobody has, the lowest of 1 to kCount, and takes it. Returns
  // 0 if there is none.
  uint8_t Take();
  // Takes the part of that number, for a call that empties it. Returns false if somebody has it, or
  // if no thread has had it since it was last taken so.
  bool TryTakeLeft(uint8_t number);
  void Return(uint8_t number);
  // Returns the part of the running thread, which has ended, if it has one.
  void ReturnOwn();

  // Returns the highest number that was ever taken.
  uint8_t highest() const { return highest_.load(std::memory_order_relaxed); }

 private:
  bool TryTake(uint8_t number);

  // A bit for each part, that of part 1 first.
  std::atomic<uint32_t> taken_{0};
  std::atomic<uint32_t> used_{0};  // by threads, since a call emptied it
  std::atomic<uint8_t> highest_{0};
};

extern constinit ThreadParts thread_parts;

}  // namespace tcmalloc

#endif  // TCMALLOC_THREAD_THREAD_PARTS_H_
