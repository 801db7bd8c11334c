// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Objects of a span that were never handed out.

#ifndef TCMALLOC_CENTRAL_OBJECT_RUN_H_
#define TCMALLOC_CENTRAL_OBJECT_RUN_H_

#include <cstddef>
#include <cstdint>

#include "pages/free_link.h"

namespace tcmalloc {

// A run of `count` adjacent objects of `size` bytes, a multiple of 8, beginning at `start`.
struct ObjectRun {
  char* start = nullptr;
  uint32_t count = 0;
  uint32_t size = 0;
  bool is_zero = false;  // every byte reads as zero, unless the program wrote there by mistake
};

// Links the objects in address order. This is the first touch of fresh memory, so callers hold no
// lock. Requires run.count > 0.
inline Chain LinkRun(const ObjectRun& run, const LinkCodec& codec) {
  const ObjectReference head = ReferenceTo(run.start);
  // The references of neighbours differ by size / 8, so their links differ by a constant.
  const uint64_t step = codec.Encode(run.size / 8);
  uint64_t link = codec.Encode(head) + step;
  char* object = run.start;
  for (uint32_t i = 1; i < run.count; ++i) {
    LinkWord(object) = link;
    link += step;
    object += run.size;
  }
  codec.Link(object, codec.end);
  return {head, run.count};
}

}  // namespace tcmalloc

#endif  // TCMALLOC_CENTRAL_OBJECT_RUN_H_
