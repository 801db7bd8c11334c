// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Chooses the size class whose source is asked next to return unneeded objects.

#ifndef TCMALLOC_TRANSFER_SOURCE_TURNS_H_
#define TCMALLOC_TRANSFER_SOURCE_TURNS_H_

#include <atomic>
#include <cstdint>

#include "size_class/size_classes.h"
#include "transfer/batch_source.h"

namespace tcmalloc {

// Takes turns for callers that come often but have time for a few classes only. Thread safe.
class SourceTurns {
 public:
  constexpr SourceTurns() = default;

  // Asks the existing sources among the next `count` classes to return the objects that were not
  // needed since they were asked before.
  template <SourceTable Sources>
  void ReturnUnused(Sources& sources, uint32_t count) {
    const uint32_t first = next_.fetch_add(count, std::memory_order_relaxed);
    for (uint32_t turn = first; turn != first + count; ++turn) {
      auto* source = sources.Find(static_cast<uint8_t>(turn % (kSizeClassCount - 1) + 1));
      if (source != nullptr) source->ReturnUnused();
    }
  }

 private:
  std::atomic<uint32_t> next_{0};
};

}  // namespace tcmalloc

#endif  // TCMALLOC_TRANSFER_SOURCE_TURNS_H_
