// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The secret mark that tells a free object in a slab from one in use.

#ifndef TCMALLOC_CACHE_PER_CPU_FREE_MARK_H_
#define TCMALLOC_CACHE_PER_CPU_FREE_MARK_H_

#include <cstdint>

#include "base/relaxed.h"
#include "pages/free_link.h"

namespace tcmalloc {

// The kernel's description of a section: its struct rseq_cs.
struct alignas(32) SectionDescriptor {
  uint32_t version;
  uint32_t flags;
  uint64_t start;
  uint64_t length;
  uint64_t abort;
};

// The first four bytes of each free object in a slab are the lower half of the address of a copy of
// the descriptor of free's section. The copy's address has 27 random bits: the kernel chooses the
// page, and RandomSeed the place within it. The section has that address in a register anyway,
// because it passes it to the kernel, so the secret costs no instruction.
//
// Data of the program equals the mark only by chance. Freeing such a block is slow but correct.
//
// Thread safe once every caller knows that Initialize has returned true; IsOn also before, and then
// true only by chance. Constant-initialised and trivially destructible. The copy is never freed,
// because the kernel may read it at any time.
class FreeMark {
 public:
  constexpr FreeMark() = default;

  // `section` is the section of free. Returns false if no memory can be had. May change errno.
  [[nodiscard]] bool Initialize(const SectionDescriptor& section, uint64_t random);

  // The value for ThreadHeader::free_section of every thread that uses the slabs.
  const SectionDescriptor* section() const { return section_; }
  uint32_t value() const { return value_; }

  // The sections' fences order this write before later uses of the object, which the sanitizer
  // cannot see.
  __attribute__((no_sanitize("thread"))) void Put(void* object) const {
    const_cast<volatile uint64_t&>(LinkWord(object)) = value();
  }
  bool IsOn(void* object) const { return static_cast<uint32_t>(LinkWord(object)) == value(); }

 private:
  // Before there is a mark: a word that data seldom begins with.
  static constexpr uint32_t kNoMark = 0xb3c86f15;

  const SectionDescriptor* section_ = nullptr;
  Relaxed<uint32_t> value_ = kNoMark;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_CACHE_PER_CPU_FREE_MARK_H_
