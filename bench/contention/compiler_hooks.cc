// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Functions that code calls at each access to memory when it was compiled with -fsanitize=thread.
// In the place of that sanitizer's run-time library, they count. Atomic operations are also carried
// out, in sequential consistency, whatever order was asked for.

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "counts.h"

using tcmalloc::bench::CountRead;
using tcmalloc::bench::CountWrite;

#define HOOK extern "C" __attribute__((visibility("hidden")))

HOOK void __tsan_init();
HOOK void __tsan_init() {}
// Virtual functions print reports; nothing else has any.
HOOK void __tsan_vptr_update(void** address, void* value);
HOOK void __tsan_vptr_update(void**, void*) {}

#define ACCESS_HOOKS(width)                                                     \
  HOOK void __tsan_read##width(void* address);                                  \
  HOOK void __tsan_read##width(void* address) { CountRead(address); }           \
  HOOK void __tsan_write##width(void* address);                                 \
  HOOK void __tsan_write##width(void* address) {                                \
    CountWrite(address, __builtin_return_address(0));                           \
  }                                                                             \
  HOOK void __tsan_unaligned_read##width(void* address);                        \
  HOOK void __tsan_unaligned_read##width(void* address) { CountRead(address); } \
  HOOK void __tsan_unaligned_write##width(void* address);                       \
  HOOK void __tsan_unaligned_write##width(void* address) {                      \
    CountWrite(address, __builtin_return_address(0));                           \
  }

ACCESS_HOOKS(1)
ACCESS_HOOKS(2)
ACCESS_HOOKS(4)
ACCESS_HOOKS(8)
ACCESS_HOOKS(16)

// Whole objects. No object of the allocator's that threads share is assigned as a whole, so that
// its first line stands for all.
HOOK void __tsan_read_range(void* address, size_t bytes);
HOOK void __tsan_read_range(void* address, size_t) { CountRead(address); }
HOOK void __tsan_write_range(void* address, size_t bytes);
HOOK void __tsan_write_range(void* address, size_t) {
  CountWrite(address, __builtin_return_address(0));
}

// A failed comparison counts as a write: the processor takes the line for itself before it
// compares.
#define ATOMIC_OPERATION(T, bits, name, operation)                              \
  HOOK T __tsan_atomic##bits##_##name(volatile T* address, T value, int order); \
  HOOK T __tsan_atomic##bits##_##name(volatile T* address, T value, int) {      \
    CountWrite(address, __builtin_return_address(0));                           \
    return operation(address, value, __ATOMIC_SEQ_CST);                         \
  }

#define ATOMIC_HOOKS(T, bits)                                                               \
  HOOK T __tsan_atomic##bits##_load(const volatile T* address, int order);                  \
  HOOK T __tsan_atomic##bits##_load(const volatile T* address, int) {                       \
    CountRead(address);                                                                     \
    return __atomic_load_n(address, __ATOMIC_SEQ_CST);                                      \
  }                                                                                         \
  HOOK void __tsan_atomic##bits##_store(volatile T* address, T value, int order);           \
  HOOK void __tsan_atomic##bits##_store(volatile T* address, T value, int) {                \
    CountWrite(address, __builtin_return_address(0));                                       \
    __atomic_store_n(address, value, __ATOMIC_SEQ_CST);                                     \
  }                                                                                         \
  ATOMIC_OPERATION(T, bits, exchange, __atomic_exchange_n)                                  \
  ATOMIC_OPERATION(T, bits, fetch_add, __atomic_fetch_add)                                  \
  ATOMIC_OPERATION(T, bits, fetch_sub, __atomic_fetch_sub)                                  \
  ATOMIC_OPERATION(T, bits, fetch_and, __atomic_fetch_and)                                  \
  ATOMIC_OPERATION(T, bits, fetch_or, __atomic_fetch_or)                                    \
  ATOMIC_OPERATION(T, bits, fetch_xor, __atomic_fetch_xor)                                  \
  HOOK int __tsan_atomic##bits##_compare_exchange_strong(volatile T* address, T* expected,  \
                                                         T desired, int, int);              \
  HOOK int __tsan_atomic##bits##_compare_exchange_strong(volatile T* address, T* expected,  \
                                                         T desired, int, int) {             \
    CountWrite(address, __builtin_return_address(0));                                       \
    return __atomic_compare_exchange_n(address, expected, desired, false, __ATOMIC_SEQ_CST, \
                                       __ATOMIC_SEQ_CST);                                   \
  }                                                                                         \
  HOOK int __tsan_atomic##bits##_compare_exchange_weak(volatile T* address, T* expected,    \
                                                       T desired, int, int);                \
  HOOK int __tsan_atomic##bits##_compare_exchange_weak(volatile T* address, T* expected,    \
                                                       T desired, int, int) {               \
    CountWrite(address, __builtin_return_address(0));                                       \
    return __atomic_compare_exchange_n(address, expected, desired, false, __ATOMIC_SEQ_CST, \
                                       __ATOMIC_SEQ_CST);                                   \
  }

ATOMIC_HOOKS(uint8_t, 8)
ATOMIC_HOOKS(uint16_t, 16)
ATOMIC_HOOKS(uint32_t, 32)
ATOMIC_HOOKS(uint64_t, 64)

HOOK void __tsan_atomic_signal_fence(int order);
HOOK void __tsan_atomic_signal_fence(int) { std::atomic_signal_fence(std::memory_order_seq_cst); }
HOOK void __tsan_atomic_thread_fence(int order);
HOOK void __tsan_atomic_thread_fence(int) { std::atomic_thread_fence(std::memory_order_seq_cst); }
