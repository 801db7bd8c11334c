// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Checks free objects without moving them.

#ifndef TCMALLOC_CENTRAL_FREE_OBJECTS_H_
#define TCMALLOC_CENTRAL_FREE_OBJECTS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/attributes.h"
#include "central/corruption.h"
#include "pages/free_link.h"
#include "pages/page_map.h"
#include "pages/span.h"
#include "size_class/size_classes.h"

namespace tcmalloc {

// Checks the free objects of one class, in a list that nobody changes meanwhile. Ends the process
// at an address at which no object begins and at a link that was overwritten. Stops after a number
// of objects that several checks share, so that the whole takes a bounded time.
class FreeObjectCheck {
 public:
  FreeObjectCheck(const PageMap& map, const LinkCodec& codec, uint8_t size_class, size_t* most)
      : map_(map), codec_(codec), size_class_(size_class), most_(most) {}

  // Follows a list, whose first objects were freed last.
  TCMALLOC_COLD void CheckList(ObjectReference reference) {
    const void* before = nullptr;
    size_t left = std::min(*most_, kMostOfList);
    *most_ -= left;
    for (; reference != codec_.end && left > 0; --left) {
      if (TCMALLOC_UNLIKELY(!IsObject(reference))) CrashAt(reference, before);
      before = ObjectAt(reference);
      reference = codec_.Next(ObjectAt(reference));
    }
    *most_ += left;
  }

  // Checks a free object of a span. Requires that the number is not used up.
  void CheckFree(const void* object) {
    --*most_;
    if (TCMALLOC_UNLIKELY(!LinkCodec::IsToAddress(codec_.Next(const_cast<void*>(object))))) {
      CrashOnBadLink(map_, object, size_class_);
    }
  }

  // Checks an object that a slab or an array names. `marked` is true if it bears its mark.
  TCMALLOC_NOINLINE void CheckNamed(const void* object, bool marked) {
    if (*most_ == 0) return;
    --*most_;
    const ObjectReference reference = ReferenceTo(object);
    if (TCMALLOC_UNLIKELY(!IsObject(reference))) CrashAt(reference, nullptr);
    if (TCMALLOC_UNLIKELY(!marked)) CrashOnCorruptedList(object, size_class_);
  }

  // Returns true unless CheckNamed would end the process.
  TCMALLOC_NOINLINE bool IsSound(const void* object, bool marked) {
    return marked && IsObject(ReferenceTo(object));
  }

  // Counts something else that took as long as an object.
  void CountOne() { --*most_; }
  bool done() const { return *most_ == 0; }

  // A long list must not use up the number.
  static constexpr size_t kMostOfList = 128;

 private:
  const Span* SpanOf(ObjectReference reference) const {
    if (reference != ReferenceTo(ObjectAt(reference))) return nullptr;
    const Span* span = map_.FindInUse(ObjectAt(reference));
    const bool of_class =
        span != nullptr && span->state == Span::State::kSmall && span->size_class == size_class_;
    return of_class ? span : nullptr;
  }
  TCMALLOC_ALWAYS_INLINE bool IsObject(ObjectReference reference) {
    const Span* span = last_;
    if (span == nullptr || ObjectAt(reference) < span->start() ||
        ObjectAt(reference) >= span->start() + span->bytes()) {
      span = SpanOf(reference);
      if (TCMALLOC_UNLIKELY(span == nullptr)) return false;
      last_ = span;
    }
    if (TCMALLOC_UNLIKELY(reference != ReferenceTo(ObjectAt(reference)))) return false;
    const auto* object = static_cast<const char*>(ObjectAt(reference));
    return IsObjectStart(static_cast<size_t>(object - span->start()), size_class_);
  }

  // An address inside a block was freed, or the link of `before` was overwritten.
  [[noreturn]] TCMALLOC_COLD void CrashAt(ObjectReference reference, const void* before) const {
    const void* object = ObjectAt(reference);
    if (const Span* span = SpanOf(reference)) CrashOnStray(object, span);
    CrashOnBadLink(map_, before != nullptr ? before : object, size_class_);
  }

  const PageMap& map_;
  const LinkCodec& codec_;
  uint8_t size_class_;
  size_t* most_;
  const Span* last_ = nullptr;  // of the object before, which holds it
};

}  // namespace tcmalloc

#endif  // TCMALLOC_CENTRAL_FREE_OBJECTS_H_
