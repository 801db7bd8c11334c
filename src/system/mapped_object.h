// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Objects that few processes need, in memory that is mapped for the first use.

#ifndef TCMALLOC_SYSTEM_MAPPED_OBJECT_H_
#define TCMALLOC_SYSTEM_MAPPED_OBJECT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/attributes.h"
#include "system/own_memory.h"

namespace tcmalloc {

// Says if an object is used as a whole, or has room for more than most processes need. Of the
// latter, its owner counts what is used: system/own_memory.h.
enum class MappedUse : uint8_t { kWhole, kSparse };

// An object that begins as zeros. A variable of the library would count against the program's
// limits of memory, needed or not. Stays mapped for good. Thread safe, without a lock;
// async-signal-safe. constinit.
template <typename T, MappedUse kUse = MappedUse::kWhole>
class MappedObject {
 public:
  constexpr MappedObject() = default;
  MappedObject(const MappedObject&) = delete;
  MappedObject& operator=(const MappedObject&) = delete;

  // Returns the object, or null if it is not mapped.
  // Acquire pairs with the release in Map: the object is zero.
  TCMALLOC_ALWAYS_INLINE T* get() const { return object_.load(std::memory_order_acquire); }
  // Returns the object, and maps it if need be; null if there is no memory. Keeps errno.
  TCMALLOC_ALWAYS_INLINE T* GetOrMap() {
    T* object = get();
    return TCMALLOC_LIKELY(object != nullptr) ? object : Map();
  }

 private:
  TCMALLOC_NOINLINE T* Map() {
    constexpr bool kSparse = kUse == MappedUse::kSparse;
    auto* fresh = static_cast<T*>(kSparse ? MapSparse(sizeof(T)) : MapZeroed(sizeof(T)));
    if (fresh == nullptr) return get();
    T* other = nullptr;
    // Release pairs with the acquire in get, and acquire with the release of a thread that was
    // faster.
    if (object_.compare_exchange_strong(other, fresh, std::memory_order_acq_rel,
                                        std::memory_order_acquire)) {
      return fresh;
    }
    kSparse ? UnmapSparse(fresh, sizeof(T)) : UnmapZeroed(fresh, sizeof(T));
    return other;
  }

  std::atomic<T*> object_{nullptr};
};

}  // namespace tcmalloc

#endif  // TCMALLOC_SYSTEM_MAPPED_OBJECT_H_
