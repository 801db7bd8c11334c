// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Reports of a corrupted heap, which end the process.

#ifndef TCMALLOC_CENTRAL_CORRUPTION_H_
#define TCMALLOC_CENTRAL_CORRUPTION_H_

#include <cstddef>
#include <cstdint>

#include "base/attributes.h"
#include "base/message.h"
#include "central/sampled_page.h"
#include "pages/free_link.h"
#include "pages/page_map.h"
#include "pages/span.h"
#include "size_class/size_classes.h"

namespace tcmalloc {

// The end of a message that names the call which noticed a mistake; no text for null, any of the
// functions that free.
struct NoticedBy {
  explicit NoticedBy(const char* name) : call(name) {}
  const char* call;
};
inline Message& operator<<(Message& message, NoticedBy by) {
  return by.call != nullptr ? message << "; noticed by " << by.call : message;
}

// Ends the process with a message of `before`, `address`, its size unless that is 0, `after` and
// `call`. Most messages have this form, and one function for all is little code.
[[noreturn]] TCMALLOC_COLD inline void CrashAtAddress(const char* before, const void* address,
                                                      size_t bytes, const char* after,
                                                      const char* call = nullptr) {
  Message message;
  message << before << address;
  if (bytes != 0) message << " (" << bytes << " bytes)";
  message << after << NoticedBy(call);
  CrashOnMisuse(message, address);
}

// Reports `block`, an address that was never given out as far as is known.
[[noreturn]] TCMALLOC_COLD inline void CrashOnUnknownBlock(const void* block,
                                                           const char* call = nullptr) {
  CrashAtAddress("invalid free of ", block, 0,
                 ": not allocated by this allocator, or freed already", call);
}

[[noreturn]] TCMALLOC_COLD inline void CrashOnInterior(const void* block, const void* start,
                                                       size_t bytes, const char* call = nullptr) {
  Message message;
  message << "invalid free of " << block << ": it points into the block at " << start << " ("
          << bytes << " bytes)" << NoticedBy(call);
  CrashOnMisuse(message, start);
}

// Reports `block`, which lies in `span`, one of small objects, but at which no object begins that
// was ever given out.
[[noreturn]] TCMALLOC_COLD inline void CrashOnStray(const void* block, const Span* span,
                                                    const char* call = nullptr) {
  const auto offset = static_cast<size_t>(static_cast<const char*>(block) - span->start());
  if (span->state == Span::State::kSampled) {
    const size_t place = SampledPage::Of(span).FindAround(offset);
    if (place == SampledPage::kNoPlace) CrashOnUnknownBlock(block, call);
    const char* start = span->start() + place * SampledPage::kUnitBytes;
    CrashOnInterior(block, start, kSizeClasses[ClassOfSampled(span, start)].size, call);
  }
  const SizeClassInfo& info = kSizeClasses[span->size_class];
  const size_t index = ObjectIndex(offset, span->size_class);
  if (index >= span->carved) CrashOnUnknownBlock(block, call);
  CrashOnInterior(block, span->start() + index * info.size, info.size, call);
}

// Reports `object`, a free object whose link is not valid.
[[noreturn]] TCMALLOC_COLD inline void CrashOnCorruptedList(const void* object,
                                                            uint8_t size_class) {
  CrashAtAddress("corrupted free list: object at ", object, kSizeClasses[size_class].size,
                 " was written to after it was freed, freed twice, or the block before it overrun");
}

// Reports a free of `object`, which is free and has that many bytes; 0 if nothing tells. Nothing
// tells either if the program ever had it.
[[noreturn]] TCMALLOC_COLD inline void CrashOnDoubleFree(const void* object, size_t bytes,
                                                         const char* call = nullptr) {
  CrashAtAddress("double free of ", object, bytes, ", or free of a block that was never allocated",
                 call);
}

// Reports the word at `memory`, which is not zero, though no block was given out there since it
// was. It decodes to `next`. Only a free of the address leaves a link.
[[noreturn]] TCMALLOC_COLD inline void CrashOnTouched(const void* memory, ObjectReference next) {
  if (LinkCodec::IsToAddress(next)) CrashOnUnknownBlock(memory);
  CrashAtAddress("overflow, invalid free or write after free at ", memory, 0,
                 ": memory that belongs to no block was written to");
}

// Returns the word at `memory`, which is zero unless the program has made a mistake. Writes zero to
// it first, so that the kernel takes one fault to provide a page that nobody touched. A read would
// take one of its own.
inline uint64_t TakeZeroWord(void* memory) {
  return __atomic_exchange_n(static_cast<uint64_t*>(memory), 0, __ATOMIC_RELAXED);
}

// Ends the process if the word at `memory`, which was never handed out since it was zero, is not.
inline void CheckUntouched(const LinkCodec& codec, const void* memory) {
  const uint64_t word = *static_cast<const volatile uint64_t*>(memory);
  if (TCMALLOC_UNLIKELY(word != 0)) CrashOnTouched(memory, codec.Decode(word));
}

// Reports `object`, which is in a list of a class and whose link is not valid. Either it was
// written to, or it never was an object and the link is the program's data by now.
[[noreturn]] TCMALLOC_COLD inline void CrashOnBadLink(const PageMap& map, const void* object,
                                                      uint8_t size_class) {
  const Span* span = map.FindInUse(object);
  if (span != nullptr && span->state == Span::State::kSmall && span->size_class == size_class) {
    const auto offset = static_cast<size_t>(static_cast<const char*>(object) - span->start());
    if (!IsObjectStart(offset, size_class)) CrashOnStray(object, span);
  }
  CrashOnCorruptedList(object, size_class);
}

}  // namespace tcmalloc

#endif  // TCMALLOC_CENTRAL_CORRUPTION_H_
