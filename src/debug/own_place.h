// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Places that threads have to themselves.

#ifndef TCMALLOC_DEBUG_OWN_PLACE_H_
#define TCMALLOC_DEBUG_OWN_PLACE_H_

#include <cstdint>

#include "base/attributes.h"
#include "thread/current_thread.h"
#include "thread/fork_gate.h"

namespace tcmalloc {

// The first kOwnPlaces of an array are each for one thread at a time, whose seat at the gate has
// that number: inside the slow path they need no lock, and outside only its own signal handlers may
// come in between. The gate's lock is between one thread's use and the next one's. The
// kSharedPlaces that follow are for all other threads: those without a seat, and those beyond so
// many.
inline constexpr uint32_t kOwnPlaces = 32;
inline constexpr uint32_t kSharedPlaces = 8;
inline constexpr uint32_t kPlaces = kOwnPlaces + kSharedPlaces;

constexpr bool IsOwnPlace(uint32_t place) { return place < kOwnPlaces; }

// Returns the place of the thread whose seat has that number.
TCMALLOC_ALWAYS_INLINE uint32_t PlaceOfSeat(uint32_t number) {
  return TCMALLOC_LIKELY(number < kOwnPlaces) ? number : kOwnPlaces + number % kSharedPlaces;
}

// Returns the place of the running thread.
TCMALLOC_ALWAYS_INLINE uint32_t PlaceOfThread() {
  const GateSeat* seat = current_thread->seat;
  return TCMALLOC_UNLIKELY(seat == nullptr) ? kOwnPlaces : PlaceOfSeat(seat->number);
}

}  // namespace tcmalloc

#endif  // TCMALLOC_DEBUG_OWN_PLACE_H_
