// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The crate configures jemalloc without its C++ part, so that a preloaded library would leave the
// operators of libstdc++ in place: one more call, and no sized delete. These forward to jemalloc's
// own entry points in the way its C++ part does.

#include <cstddef>
#include <new>

extern "C" {
void* malloc(std::size_t size) noexcept;
void free(void* pointer) noexcept;
void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept;
void sdallocx(void* pointer, std::size_t size, int flags) noexcept;
}

namespace {

// Calls the new handler until `allocate` succeeds; throws, or with kNothrow returns null, where
// there is none.
enum class OnFailure { kThrow, kNothrow };

template <OnFailure kOnFailure, typename Allocate>
[[gnu::noinline]] void* NewSlow(Allocate allocate) {
  for (;;) {
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) {
      if constexpr (kOnFailure == OnFailure::kNothrow) return nullptr;
      throw std::bad_alloc();
    }
    handler();
    if (void* pointer = allocate()) return pointer;
  }
}

template <typename Allocate>
inline void* New(Allocate allocate) {
  void* pointer = allocate();
  return __builtin_expect(pointer != nullptr, 1) ? pointer : NewSlow<OnFailure::kThrow>(allocate);
}

template <typename Allocate>
inline void* NewNothrow(Allocate allocate) noexcept {
  void* pointer = allocate();
  if (__builtin_expect(pointer != nullptr, 1)) return pointer;
  try {
    return NewSlow<OnFailure::kNothrow>(allocate);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

inline void FreeSized(void* pointer, std::size_t size) noexcept {
  if (__builtin_expect(pointer != nullptr, 1)) sdallocx(pointer, size, 0);
}

// jemalloc encodes an alignment as its base-two logarithm in the low bits of the flags.
inline void FreeSizedAligned(void* pointer, std::size_t size, std::align_val_t alignment) noexcept {
  if (__builtin_expect(pointer != nullptr, 1)) {
    sdallocx(pointer, size, __builtin_ctzl(static_cast<std::size_t>(alignment)));
  }
}

}  // namespace

#define PEER_EXPORT [[gnu::visibility("default")]]

PEER_EXPORT void* operator new(std::size_t size) {
  return New([=] { return malloc(size); });
}
PEER_EXPORT void* operator new[](std::size_t size) {
  return New([=] { return malloc(size); });
}
PEER_EXPORT void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return NewNothrow([=] { return malloc(size); });
}
PEER_EXPORT void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return NewNothrow([=] { return malloc(size); });
}
PEER_EXPORT void* operator new(std::size_t size, std::align_val_t alignment) {
  return New([=] { return aligned_alloc(static_cast<std::size_t>(alignment), size); });
}
PEER_EXPORT void* operator new[](std::size_t size, std::align_val_t alignment) {
  return New([=] { return aligned_alloc(static_cast<std::size_t>(alignment), size); });
}
PEER_EXPORT void* operator new(std::size_t size, std::align_val_t alignment,
                               const std::nothrow_t&) noexcept {
  return NewNothrow([=] { return aligned_alloc(static_cast<std::size_t>(alignment), size); });
}
PEER_EXPORT void* operator new[](std::size_t size, std::align_val_t alignment,
                                 const std::nothrow_t&) noexcept {
  return NewNothrow([=] { return aligned_alloc(static_cast<std::size_t>(alignment), size); });
}

PEER_EXPORT void operator delete(void* pointer) noexcept { free(pointer); }
PEER_EXPORT void operator delete[](void* pointer) noexcept { free(pointer); }
PEER_EXPORT void operator delete(void* pointer, const std::nothrow_t&) noexcept { free(pointer); }
PEER_EXPORT void operator delete[](void* pointer, const std::nothrow_t&) noexcept { free(pointer); }
PEER_EXPORT void operator delete(void* pointer, std::size_t size) noexcept {
  FreeSized(pointer, size);
}
PEER_EXPORT void operator delete[](void* pointer, std::size_t size) noexcept {
  FreeSized(pointer, size);
}
PEER_EXPORT void operator delete(void* pointer, std::align_val_t) noexcept { free(pointer); }
PEER_EXPORT void operator delete[](void* pointer, std::align_val_t) noexcept { free(pointer); }
PEER_EXPORT void operator delete(void* pointer, std::align_val_t, const std::nothrow_t&) noexcept {
  free(pointer);
}
PEER_EXPORT void operator delete[](void* pointer, std::align_val_t,
                                   const std::nothrow_t&) noexcept {
  free(pointer);
}
PEER_EXPORT void operator delete(void* pointer, std::size_t size,
                                 std::align_val_t alignment) noexcept {
  FreeSizedAligned(pointer, size, alignment);
}
PEER_EXPORT void operator delete[](void* pointer, std::size_t size,
                                   std::align_val_t alignment) noexcept {
  FreeSizedAligned(pointer, size, alignment);
}
