// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Keeps threads out of the slow paths while one of them forks.

#ifndef TCMALLOC_THREAD_FORK_GATE_H_
#define TCMALLOC_THREAD_FORK_GATE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/attributes.h"
#include "base/spin_lock.h"
#include "pages/metadata_arena.h"

namespace tcmalloc {

// The place of a seat's owner.
enum class Place : uint8_t {
  kOutside,
  kInside,
  kForking,  // inside, in a fork by a handler that interrupted it: it takes no step there
};

// The record in which a thread with a front end says where it is, on a cache line of its own.
struct alignas(64) GateSeat {
  std::atomic<Place> place{Place::kOutside};
  std::atomic<bool> taken{false};
  uint32_t number = 0;            // from 0 on; constant once the seat is listed
  GateSeat* next = nullptr;       // constant once the seat is listed
  GateSeat* next_free = nullptr;  // guarded by the gate's lock; its owner's while it is taken
};

// Identifies a thread by the address of one of its thread-local variables.
using ThreadId = const void*;

// Facts about the other threads that the closing thread found.
struct GateFindings {
  bool others : 1 = false;   // a thread other than its own has a front end
  bool abandon : 1 = false;  // somebody is inside and does not leave
};

// Fork takes no lock. It closes the gate and waits until no other thread is inside. A thread that
// arrives meanwhile waits for a moment, then turns away and is served without locks. A thread that
// holds a lock of another library thus never waits long for the one that forks. A thread enters
// before it takes any lock of the heap, and holds none when it leaves.
//
// A thread with a front end has a seat. It says by a plain store that it is inside, and then looks
// at the gate. The thread that closes the gate fences all threads, and then looks at the seats. So
// either the first thread sees a closed gate, or the second sees it inside. If the kernel has no
// such fence, threads fence themselves from the first fork on. A thread without a front end, called
// a stranger, enters its name by an atomic exchange. Strangers are rare, and there is room for few
// at a time.
//
// Invariant: while the gate is closed, a seat that was found outside stays outside, except for the
// moment in which its owner finds the gate closed.
//
// Constant-initialised and trivially destructible. Thread safe and, except for
// TakeSeat, TakeFreeSeat and ReturnSeat, async-signal-safe.
class ForkGate {
 public:
  // Called by the first thread that enters in a child where vanished threads left something, with
  // all others outside and signals blocked.
  using Cleaner = void (*)();

  constexpr explicit ForkGate(Cleaner cleaner) : cleaner_(cleaner) {}
  ForkGate(const ForkGate&) = delete;
  ForkGate& operator=(const ForkGate&) = delete;

  // Returns null if no memory can be had. Called inside.
  GateSeat* TakeSeat(MetadataArena& arena) TCMALLOC_EXCLUDES(lock_);
  // Takes a seat that nobody has, for a call that looks after what belongs to its number. Returns
  // null if there is none. Called inside.
  GateSeat* TakeFreeSeat() TCMALLOC_EXCLUDES(lock_) {
    const SpinLockHolder holder(lock_);
    GateSeat* seat = free_;
    if (seat == nullptr) return nullptr;
    free_ = seat->next_free;
    seat->taken.store(true, std::memory_order_relaxed);
    return seat;
  }
  void ReturnSeat(GateSeat* seat) TCMALLOC_EXCLUDES(lock_);

  // Returns false if the gate is closed: the thread is outside, and must take no lock of the heap.
  [[nodiscard]] TCMALLOC_ALWAYS_INLINE bool Enter(GateSeat* seat) {
    seat->place.store(Place::kInside, std::memory_order_relaxed);
    // Pairs with FenceOthers, whose fence of all threads makes a barrier of the processor out of
    // this one of the compiler.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    // Acquire pairs with the release in Clear: a thread that finds the gate open finds the heap
    // cleared.
    return TCMALLOC_LIKELY(word_.load(std::memory_order_acquire) == 0) || RecheckGate(seat);
  }
  // Enters as well, but returns false, outside, if there is anything to be done at the gate.
  [[nodiscard]] TCMALLOC_ALWAYS_INLINE bool TryEnter(GateSeat* seat) {
    seat->place.store(Place::kInside, std::memory_order_relaxed);
    // Pairs with FenceOthers, as in Enter.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    // Acquire pairs with the release in Clear, as in Enter.
    if (TCMALLOC_LIKELY(word_.load(std::memory_order_acquire) == 0)) return true;
    Leave(seat);
    return false;
  }
  TCMALLOC_ALWAYS_INLINE void Leave(GateSeat* seat) {
    // Release pairs with the acquire in FindOthers: a thread that finds the seat empty sees all
    // earlier writes.
    seat->place.store(Place::kOutside, std::memory_order_release);
  }

  // Enter and Leave for a stranger. EnterAsStranger also returns false if there are too many of
  // them.
  [[nodiscard]] bool EnterAsStranger(ThreadId thread);
  void LeaveAsStranger(ThreadId thread);

  // Waits for the forks that are under way, until a moment after the first of them closed the gate.
  // Returns true if none is under way then. Most forks are over by that time, and serving without
  // locks costs memory. Keeps errno. Requires a thread that is outside and does not fork.
  [[nodiscard]] bool AwaitOpening();

  // Returns true if a fork is under way, or if the heap may not be used any more.
  bool closed() const { return (word_.load(std::memory_order_relaxed) & ~kSelfFencing) != 0; }
  // Returns true if the heap may not be used any more, or not yet, because shared caches may be
  // torn.
  bool IsDamaged() const { return (word_.load(std::memory_order_relaxed) & kAbandoned) != 0; }

  // Closes the gate once more. A thread that is inside counts as forking until Open.
  void Close(GateSeat* own, ThreadId thread);
  // Waits until all other threads are outside, but gives up soon if none moves.
  GateFindings AwaitOthers(const GateSeat* own, ThreadId thread);
  // Undoes one Close; the thread's last one if `outermost`.
  void Open(GateSeat* own, ThreadId thread, bool outermost);

  // Opens in the child, where only `own` survives. The gate stays closed `forks` times, by the
  // forks that this one interrupted, and for good if another thread was inside. Otherwise, if there
  // were other threads, the cleaner is called when a thread enters.
  void OpenInChild(GateSeat* own, ThreadId thread, uint32_t forks, GateFindings findings);

  // Frees all seats but `own`. Called by the cleaner.
  void FreeOtherSeats(const GateSeat* own) TCMALLOC_EXCLUDES(lock_);

 private:
  // The bits of the word: the number of forks under way, and these flags.
  static constexpr uint32_t kForks = 0xffff;
  static constexpr uint32_t kUncleared = 1U << 16;    // others have left what is to be cleared
  static constexpr uint32_t kClearing = 1U << 17;     // a thread is at it
  static constexpr uint32_t kAbandoned = 1U << 18;    // somebody who vanished was inside
  static constexpr uint32_t kSelfFencing = 1U << 19;  // the kernel has no fence
  static constexpr size_t kStrangers = 64;
  static constexpr uintptr_t kForkingStranger = 1;

  struct View {
    bool busy = false;
    GateFindings findings;
  };
  View FindOthers(const GateSeat* own, ThreadId thread) const;
  TCMALLOC_COLD bool RecheckGate(GateSeat* seat);
  // Returns true if waiting helps: forks are under way, and nothing is torn.
  static bool IsForking(uint32_t word) { return (word & kForks) != 0 && (word & kAbandoned) == 0; }
  // Returns true if the thread, which says that it is inside, may stay.
  bool MayStay(const GateSeat* seat, ThreadId thread);
  bool Clear(const GateSeat* seat, ThreadId thread);
  void FenceOthers();
  std::atomic<uintptr_t>* StrangerOf(ThreadId thread);

  std::atomic<uint32_t> word_{0};
  std::atomic<int64_t> closed_at_{0};      // when the first of the forks closed the gate
  std::atomic<GateSeat*> seats_{nullptr};  // all that were ever made, the last one first
  const Cleaner cleaner_;
  SpinLock lock_{LockRank::kThreadCaches};
  GateSeat* free_ TCMALLOC_GUARDED_BY(lock_) = nullptr;
  std::atomic<uint32_t> made_{0};  // seats
  alignas(64) std::atomic<uintptr_t> strangers_[kStrangers] = {};
};

}  // namespace tcmalloc

#endif  // TCMALLOC_THREAD_FORK_GATE_H_
