// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Blocks on their way from a pool to the spans.

#ifndef TCMALLOC_HARDENED_SPAN_RETURN_H_
#define TCMALLOC_HARDENED_SPAN_RETURN_H_

#include <cstdint>

#include "allocator/slow_path.h"
#include "base/attributes.h"
#include "heap/heap.h"
#include "pages/free_link.h"
#include "pages/page_types.h"
#include "pages/span.h"

namespace tcmalloc {

// Takes blocks of one class, whose frees the program's hooks know, and returns them to their spans
// past all caches when it ends.
class SpanReturn {
 public:
  explicit SpanReturn(uint8_t size_class) : size_class_(size_class) {}
  ~SpanReturn() {
    if (chain_.head != codec_.end) heap.transfer(size_class_).InsertPast(chain_);
  }
  SpanReturn(const SpanReturn&) = delete;
  SpanReturn& operator=(const SpanReturn&) = delete;

  TCMALLOC_ALWAYS_INLINE void Add(void* block) {
    // Samples have no class there.
    const bool is_plain = TCMALLOC_LIKELY(reinterpret_cast<uintptr_t>(block) < limit_) &&
                          heap.page_map().ClassBelowLimit(PageId::Containing(block)) == size_class_;
    if (TCMALLOC_UNLIKELY(!is_plain)) return AddOther(block);
    codec_.Prepend(block, &chain_);
  }

 private:
  TCMALLOC_COLD void AddOther(void* block) {
    if (slow_path_.reentrant()) return heap.deferred().Push(block);
    const Span* span = heap.page_map().Get(PageId::Containing(block));
    if (span->state != Span::State::kSmall) return slow_path_.FreeBlock(block);
    codec_.Prepend(block, &chain_);  // its span lies outside of the window
  }

  const SlowPath slow_path_;
  const uint8_t size_class_;
  // 0 where all blocks are deferred, because a slow path called what frees them.
  const uintptr_t limit_ = slow_path_.reentrant() ? 0 : heap.page_map().window_limit();
  const LinkCodec codec_ = heap.codec();
  Chain chain_{codec_.end, 0};
};

}  // namespace tcmalloc

#endif  // TCMALLOC_HARDENED_SPAN_RETURN_H_
