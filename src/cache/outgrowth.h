// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Tells if a size class outgrew the cache that keeps its objects.

#ifndef TCMALLOC_CACHE_OUTGROWTH_H_
#define TCMALLOC_CACHE_OUTGROWTH_H_

#include <cstdint>

#include "base/attributes.h"
#include "base/relaxed.h"
#include "cache/scatter.h"

namespace tcmalloc {

// See kOutgrownBytes. All zero at first. Guarded by the owner; others may ask, and get an estimate.
class Outgrowth {
 public:
  bool active() const { return outgrows_; }

  // Notes objects that are to be kept beside `kept` bytes of their class. `fits` is false if there
  // is no room for them.
  void NoteKept(Scatter scatter, int64_t kept, bool fits) {
    const int64_t most_in_pieces = fits ? kPiecesKeptBytes : kNearKeptBytes;
    if (scatter == Scatter::kInPieces && kept >= most_in_pieces) outgrows_ = true;
  }
  // Notes objects that went home because they are near and not in rows.
  void NoteSentHome(uint32_t bytes) { sent_home_ += bytes; }
  // Notes a miss, after which the class may fit again.
  void NoteMiss() {
    if (TCMALLOC_LIKELY(sent_home_ == 0)) return;
    outgrows_ = sent_home_ >= kOutgrownBytes;
    sent_home_ = 0;
  }

 private:
  uint32_t sent_home_ = 0;  // bytes since the last miss
  Relaxed<bool> outgrows_ = false;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_CACHE_OUTGROWTH_H_
