// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Profiles that were asked for.

#ifndef TCMALLOC_HEAP_PROFILE_COLLECTED_PROFILE_H_
#define TCMALLOC_HEAP_PROFILE_COLLECTED_PROFILE_H_

#include <cstdint>

#include "heap_profile/profiles.h"
#include "heap_profile/sample_buffer.h"

namespace tcmalloc {

enum class ProfileKind : uint8_t {
  kHeap,           // live now
  kPeakHeap,       // live when the heap was largest
  kAllocations,    // allocated between begin and end, whether freed meanwhile or not
  kLifetimes,      // allocated or freed between begin and end
  kFragmentation,  // live now, and what each keeps from going back to the page heap
};

// Rows and what they are about. Lies in memory of its own, not in the heap that it describes. To be
// used by one thread at a time. None of the functions is for signal handlers.
struct CollectedProfile {
  // Return null if no memory can be had.
  //
  // Takes a profile of the present, of kind kHeap, kPeakHeap or kFragmentation.
  static CollectedProfile* Take(ProfileKind kind);
  // Begins a profile of kind kAllocations or kLifetimes, which has no rows until End.
  static CollectedProfile* Begin(ProfileKind kind);
  // Begins one while the heap is being made, when nobody is in the slow path.
  static CollectedProfile* BeginWithHeap(ProfileKind kind, uint64_t period);

  // Ends a profile that was begun and collects its rows.
  void End();
  // Gives the memory back. Ends a profile that was begun.
  void Delete();

  ProfileKind kind = ProfileKind::kHeap;
  bool running = false;
  uint64_t period = 0;        // mean bytes between two samples
  int64_t begin_ns = 0;       // by the monotonic clock; of the present when it was taken
  int64_t end_ns = 0;         // likewise
  int64_t wall_begin_ns = 0;  // since 1970
  // The buffer also counts samples that are missing because a table or a log was full.
  SampleBuffer rows;

 private:
  uint64_t left_out_before_ = 0;  // of the log when the profile began

  static CollectedProfile* New(ProfileKind kind);
  // Returns the log that the kind of profile is made of.
  SampleLog& Log() const;
  void CollectLive();
  void CollectAllocations();
  void CollectLifetimes();
};

}  // namespace tcmalloc

#endif  // TCMALLOC_HEAP_PROFILE_COLLECTED_PROFILE_H_
