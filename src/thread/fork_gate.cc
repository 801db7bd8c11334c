// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "thread/fork_gate.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <new>

#include "system/biased_lock.h"
#include "system/clock.h"
#include "system/futex.h"
#include "system/signal_mask.h"

namespace tcmalloc {
namespace {

constexpr int64_t kMillisecond = 1'000'000;

// The number of times that the thread yields the processor before it sleeps, and the length of the
// first sleep.
constexpr int kYields = 16;
constexpr int64_t kFirstNap = kMillisecond / 16;
constexpr int64_t kLongestNap = 2 * kMillisecond;
// Slow paths end within microseconds while their threads run. One that does not end in these turns,
// which take ten seconds, belongs to a thread that is stopped, or whose handler waits for the
// forking thread. A thread that forks inside its own slow path may hold the lock that the others
// wait for. It waits for two milliseconds only and then goes on, and so do they.
constexpr int kTurns = kYields + 5000;
constexpr int kTurnsInside = kYields + 5;

// The longest time after the closing of the gate for which other threads wait. The forking thread
// may wait for a lock that one of them holds, so that their waiting delays it.
constexpr int64_t kShelter = 20 * kMillisecond;

void Nap(int64_t ns) {
  std::atomic<uint32_t> nobody_wakes{0};
  SleepWhile(nobody_wakes, 0, static_cast<uint64_t>(ns));
}

uintptr_t NameOf(ThreadId thread) { return reinterpret_cast<uintptr_t>(thread) << 1; }

}  // namespace

GateSeat* ForkGate::TakeSeat(MetadataArena& arena) {
  if (GateSeat* free = TakeFreeSeat()) return free;
  void* memory = arena.Allocate(sizeof(GateSeat), alignof(GateSeat));
  if (memory == nullptr) return nullptr;
  auto* seat = new (memory) GateSeat;
  seat->taken.store(true, std::memory_order_relaxed);
  seat->number = made_.fetch_add(1, std::memory_order_relaxed);
  seat->next = seats_.load(std::memory_order_relaxed);
  // Release pairs with the acquire in FindOthers and FreeOtherSeats and publishes the seat.
  while (!seats_.compare_exchange_weak(seat->next, seat, std::memory_order_release,
                                       std::memory_order_relaxed)) {
  }
  return seat;
}

void ForkGate::ReturnSeat(GateSeat* seat) {
  SpinLockHolder holder(lock_);
  seat->taken.store(false, std::memory_order_relaxed);
  seat->next_free = free_;
  free_ = seat;
}

bool ForkGate::RecheckGate(GateSeat* seat) {
  if (MayStay(seat, nullptr)) return true;
  Leave(seat);
  return false;
}

std::atomic<uintptr_t>* ForkGate::StrangerOf(ThreadId thread) {
  const uintptr_t name = NameOf(thread);
  for (std::atomic<uintptr_t>& stranger : strangers_) {
    if ((stranger.load(std::memory_order_relaxed) & ~kForkingStranger) == name) return &stranger;
  }
  return nullptr;
}

bool ForkGate::EnterAsStranger(ThreadId thread) {
  for (std::atomic<uintptr_t>& stranger : strangers_) {
    uintptr_t nobody = 0;
    // Pairs with FindOthers: in the one order of both words, with the load below and the addition
    // in Close, either this thread finds the gate closed or the other one finds its name.
    if (!stranger.compare_exchange_strong(nobody, NameOf(thread))) continue;
    // Pairs with Close, and with the release in Clear.
    if (word_.load() == 0 || MayStay(nullptr, thread)) return true;
    // Release pairs with the acquire in FindOthers, because MayStay may have cleared the heap.
    stranger.store(0, std::memory_order_release);
    return false;
  }
  return false;
}

void ForkGate::LeaveAsStranger(ThreadId thread) {
  if (std::atomic<uintptr_t>* stranger = StrangerOf(thread)) {
    // Release pairs with the acquire in FindOthers.
    stranger->store(0, std::memory_order_release);
  }
}

bool ForkGate::MayStay(const GateSeat* seat, ThreadId thread) {
  // Pairs with FenceOthers where the kernel has no fence.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  // Acquire pairs with the release in Clear.
  const uint32_t word = word_.load(std::memory_order_acquire) & ~kSelfFencing;
  return word == 0 || (word == kUncleared && Clear(seat, thread));
}

// The data of vanished threads is cleared when the surviving thread is outside. That may be later,
// because it may have forked in a handler that interrupted it.
bool ForkGate::Clear(const GateSeat* seat, ThreadId thread) {
  const SignalsBlocked scope;
  const uint32_t fencing = word_.load(std::memory_order_relaxed) & kSelfFencing;
  uint32_t uncleared = kUncleared | fencing;
  // Acquire pairs with the release in OpenInChild and publishes which thread survived.
  if (!word_.compare_exchange_strong(uncleared, kClearing | fencing, std::memory_order_acquire,
                                     std::memory_order_relaxed)) {
    return false;
  }
  if (FindOthers(seat, thread).busy) {
    word_.fetch_xor(kClearing | kUncleared, std::memory_order_relaxed);
    return false;
  }
  cleaner_();
  // Release pairs with the acquire in Enter, EnterAsStranger and MayStay. A fork that began
  // meanwhile waits for this thread, and finds it gone at once.
  const uint32_t word = word_.fetch_and(~kClearing, std::memory_order_release) & ~kClearing;
  return (word & ~kSelfFencing) == 0;
}

bool ForkGate::AwaitOpening() {
  const int saved_errno = errno;
  const int64_t end = closed_at_.load(std::memory_order_relaxed) + kShelter;
  uint32_t word = word_.load(std::memory_order_relaxed);
  const bool comes_late = IsForking(word) && MonotonicNanoseconds() >= end;
  // A thread that comes late sleeps once, briefly. Otherwise it would go on to fill memory that is
  // not used again soon.
  if (comes_late) Nap(kFirstNap);
  for (; IsForking(word); word = word_.load(std::memory_order_relaxed)) {
    const int64_t left = end - MonotonicNanoseconds();
    if (left <= 0) break;
    SleepWhile(word_, word, static_cast<uint64_t>(left));
  }
  errno = saved_errno;
  return (word & ~kSelfFencing) == 0;
}

ForkGate::View ForkGate::FindOthers(const GateSeat* own, ThreadId thread) const {
  View view;
  const auto note = [&view](bool inside, bool forking) {
    view.busy = view.busy || (inside && !forking);
    view.findings.abandon = view.findings.abandon || forking;
  };
  for (const std::atomic<uintptr_t>& stranger : strangers_) {
    // Pairs with EnterAsStranger, and with the release in LeaveAsStranger.
    const uintptr_t name = stranger.load();
    const bool forking = (name & kForkingStranger) != 0;
    if (name != 0 && (name & ~kForkingStranger) != NameOf(thread)) note(true, forking);
  }
  // Acquire pairs with the release in TakeSeat.
  for (const GateSeat* seat = seats_.load(std::memory_order_acquire); seat != nullptr;
       seat = seat->next) {
    if (seat == own) continue;
    // Acquire pairs with the release in Leave.
    const Place place = seat->place.load(std::memory_order_acquire);
    note(place != Place::kOutside, place == Place::kForking);
    view.findings.others = view.findings.others || seat->taken.load(std::memory_order_relaxed);
  }
  return view;
}

void ForkGate::Close(GateSeat* own, ThreadId thread) {
  if (own != nullptr && own->place.load(std::memory_order_relaxed) == Place::kInside) {
    // Publishes nothing: a thread that finds this leaves the heap alone.
    own->place.store(Place::kForking, std::memory_order_relaxed);
  }
  if (std::atomic<uintptr_t>* stranger = StrangerOf(thread)) {
    stranger->fetch_or(kForkingStranger, std::memory_order_relaxed);
  }
  // Pairs with EnterAsStranger: see there.
  if ((word_.fetch_add(1) & kForks) == 0) {
    closed_at_.store(MonotonicNanoseconds(), std::memory_order_relaxed);
  }
}

// Tells threads to fence themselves from now on if the kernel cannot fence them. Stores that a
// thread made before it could see that are in memory long before the nap is over.
void ForkGate::FenceOthers() {
  // Pairs with Enter.
  if (FenceThreads()) return;
  const uint32_t before = word_.fetch_or(kSelfFencing, std::memory_order_relaxed);
  if ((before & kSelfFencing) == 0) Nap(kMillisecond);
  // Pairs with MayStay.
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

GateFindings ForkGate::AwaitOthers(const GateSeat* own, ThreadId thread) {
  if (IsDamaged()) return {.others = true, .abandon = true};
  FenceOthers();
  View view = FindOthers(own, thread);
  const bool inside =
      StrangerOf(thread) != nullptr ||
      (own != nullptr && own->place.load(std::memory_order_relaxed) == Place::kForking);
  const int turns = inside ? kTurnsInside : kTurns;
  int64_t nap = kFirstNap;
  for (int turn = 0; view.busy && turn < turns; ++turn) {
    if (turn < kYields) {
      ::sched_yield();
    } else {
      Nap(nap);
      nap = std::min(2 * nap, kLongestNap);
    }
    view = FindOthers(own, thread);
  }
  view.findings.abandon = view.findings.abandon || view.busy;
  return view.findings;
}

void ForkGate::Open(GateSeat* own, ThreadId thread, bool outermost) {
  if (outermost) {
    if (own != nullptr && own->place.load(std::memory_order_relaxed) == Place::kForking) {
      own->place.store(Place::kInside, std::memory_order_relaxed);
    }
    if (std::atomic<uintptr_t>* stranger = StrangerOf(thread)) {
      stranger->fetch_and(~kForkingStranger, std::memory_order_relaxed);
    }
  }
  // Publishes nothing: the heap is as it was.
  if ((word_.fetch_sub(1, std::memory_order_relaxed) & kForks) == 1) WakeSleepers(word_);
}

void ForkGate::OpenInChild(GateSeat* own, ThreadId thread, uint32_t forks, GateFindings findings) {
  for (std::atomic<uintptr_t>& stranger : strangers_) {
    const uintptr_t name = stranger.load(std::memory_order_relaxed) & ~kForkingStranger;
    if (name != NameOf(thread)) stranger.store(0, std::memory_order_relaxed);
  }
  for (GateSeat* seat = seats_.load(std::memory_order_relaxed); seat != nullptr;
       seat = seat->next) {
    if (seat == own || seat->place.load(std::memory_order_relaxed) == Place::kOutside) continue;
    seat->place.store(Place::kOutside, std::memory_order_relaxed);
  }
  const uint32_t kept =
      word_.load(std::memory_order_relaxed) & (kAbandoned | kSelfFencing | kUncleared);
  const uint32_t left = findings.abandon ? kAbandoned : findings.others ? kUncleared : 0;
  // Release pairs with the acquire in Clear: another library's handler may have started a thread.
  word_.store(kept | left | (forks + 1), std::memory_order_release);
  Open(own, thread, forks == 0);
}

void ForkGate::FreeOtherSeats(const GateSeat* own) {
  SpinLockHolder holder(lock_);
  free_ = nullptr;
  // Acquire pairs with the release in TakeSeat.
  for (GateSeat* seat = seats_.load(std::memory_order_acquire); seat != nullptr;
       seat = seat->next) {
    if (seat == own) continue;
    seat->taken.store(false, std::memory_order_relaxed);
    seat->next_free = free_;
    free_ = seat;
  }
}

}  // namespace tcmalloc
