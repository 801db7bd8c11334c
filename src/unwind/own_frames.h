// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The frames of this library with which most walks begin.

#ifndef TCMALLOC_UNWIND_OWN_FRAMES_H_
#define TCMALLOC_UNWIND_OWN_FRAMES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/attributes.h"
#include "unwind/machine.h"

namespace tcmalloc {

// The calls from an entry point of this library down to where a walk begins. A walk has returned
// from them before the next one begins, so that it never meets them again at the same place; but
// there are few of them, one for each entry point, and each makes frames of the same sizes each
// time. Where the return addresses are those of such a chain, at their distances from the stack
// pointer, the tables would lead the same way: by induction from the innermost frame, because a
// return address tells the size of its function's frame. The library is never unloaded.
//
// Not thread safe.
class OwnFrames {
 public:
  static constexpr size_t kMostFrames = 8;

  // A frame by the address to which its callee returns. Distances are in bytes, from the stack
  // pointer where the walk begins.
  struct Caller {
    uint32_t return_address_at = 0;
    uintptr_t pc = 0;
  };
  struct Chain {
    uintptr_t begin = 0;                           // where the walk begins; 0 if there is no chain
    uint32_t count = 0;                            // of callers
    std::array<Caller, kMostFrames> callers = {};  // in this library, the innermost first
    // Of what called them: where the last of them returns to, and the stack pointer then.
    uint32_t return_address_at = 0;
    uint32_t stack_pointer = 0;
    // One more than where its registers were saved; 0 if they are as they were.
    uint32_t frame_pointer_place = 0;
    uint32_t extra_place = 0;

    std::span<const Caller> view() const { return {callers.data(), count}; }
  };

  constexpr OwnFrames() = default;
  OwnFrames(const OwnFrames&) = delete;
  OwnFrames& operator=(const OwnFrames&) = delete;

  // Returns the chain from a function that makes a call at `pc` with this stack pointer; null if it
  // is not known. Requires the `bytes` bytes from there on to be readable.
  TCMALLOC_ALWAYS_INLINE const Chain* Find(uintptr_t pc, uintptr_t sp, size_t bytes) const {
    for (const Chain& chain : chains_) {
      if (chain.begin == pc && chain.stack_pointer <= bytes && IsAt(chain, sp)) return &chain;
    }
    return nullptr;
  }

  // Takes the place of the oldest one.
  void Add(const Chain& chain) { chains_[next_++ % kChains] = chain; }

 private:
  // More than the entry points that a program uses.
  static constexpr size_t kChains = 8;

  // Chains differ most in the last callers.
  TCMALLOC_ALWAYS_INLINE static bool IsAt(const Chain& chain, uintptr_t sp) {
    for (size_t i = chain.count; i-- > 0;) {
      const Caller& caller = chain.callers[i];
      const uintptr_t pc = machine::LoadWord(sp + caller.return_address_at);
      if (machine::StripAuthentication(pc) != caller.pc) return false;
    }
    return true;
  }

  uint32_t next_ = 0;
  Chain chains_[kChains];
};

// Returns true for code of this library, if it is a shared one. The frames of other code are too
// many to remember chains of them.
bool IsOfOwnLibrary(uintptr_t pc);

// Tests: takes this for the library; finds it again if `start` is 0.
void SetOwnLibrary(uintptr_t start, uintptr_t end);

}  // namespace tcmalloc

#endif  // TCMALLOC_UNWIND_OWN_FRAMES_H_
