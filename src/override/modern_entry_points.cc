// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Allocation functions that return the size of the block, and operator new with a hint of how often
// the block will be used. Hints are accepted and change nothing: blocks of all hints come from the
// same place.

#include <gperftools/tcmalloc.h>
#include <tcmalloc/alloc_at_least.h>

// The header declares its functions weak, for programs that run without the library. Here they are
// not.
#define TCMALLOC_OPTIONAL
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wunknown-warning-option"
#pragma GCC diagnostic ignored "-Waddress"
#pragma GCC diagnostic ignored "-Wtautological-pointer-compare"
#include <tcmalloc/new_extension.h>
#pragma GCC diagnostic pop

#include <cerrno>

#include "allocator/usable_size.h"
#include "base/bits.h"
#include "override/blocks.h"
#include "override/operator_new.h"
#include "override/out_of_memory.h"

namespace tcmalloc {
namespace {

sized_ptr_t Sized(void* block) { return {block, UsableSizeInUseByCall(block)}; }

alloc_result_t AtLeast(void* block, size_t size, size_t alignment) {
  if (block == nullptr) block = FailAllocation(size, alignment);
  return {block, UsableSizeInUseByCall(block)};
}

}  // namespace
}  // namespace tcmalloc

using tcmalloc::Blocks;
using tcmalloc::NewAligned;
using tcmalloc::NewAlignedNoThrow;
using tcmalloc::NewNoThrow;
using tcmalloc::Sized;

#pragma GCC visibility push(default)
extern "C" {

alloc_result_t alloc_at_least(size_t min_size) noexcept {
  return tcmalloc::AtLeast(Blocks::Malloc(min_size), min_size, tcmalloc::kNoAlignment);
}

alloc_result_t aligned_alloc_at_least(size_t alignment, size_t min_size) noexcept {
  if (!tcmalloc::IsPowerOfTwo(alignment)) {
    errno = EINVAL;
    return {nullptr, 0};
  }
  void* block = Blocks::Aligned(min_size, alignment);
  return tcmalloc::AtLeast(block, min_size, alignment);
}

__sized_ptr_t __size_returning_new(size_t size) { return Sized(tcmalloc::New(size)); }
__sized_ptr_t __size_returning_new_hot_cold(size_t size, __hot_cold_t) {
  return Sized(tcmalloc::New(size));
}
__sized_ptr_t __size_returning_new_aligned(size_t size, std::align_val_t alignment) {
  return Sized(NewAligned(size, alignment));
}
__sized_ptr_t __size_returning_new_aligned_hot_cold(size_t size, std::align_val_t alignment,
                                                    __hot_cold_t) {
  return Sized(NewAligned(size, alignment));
}

__sized_ptr_t tcmalloc_size_returning_operator_new_nothrow(size_t size) noexcept {
  return Sized(NewNoThrow(size));
}
__sized_ptr_t tcmalloc_size_returning_operator_new_hot_cold_nothrow(size_t size,
                                                                    __hot_cold_t) noexcept {
  return Sized(NewNoThrow(size));
}
__sized_ptr_t tcmalloc_size_returning_operator_new_aligned_nothrow(
    size_t size, std::align_val_t alignment) noexcept {
  return Sized(NewAlignedNoThrow(size, alignment));
}
__sized_ptr_t tcmalloc_size_returning_operator_new_aligned_hot_cold_nothrow(
    size_t size, std::align_val_t alignment, __hot_cold_t) noexcept {
  return Sized(NewAlignedNoThrow(size, alignment));
}

}  // extern "C"

void* operator new(size_t size, __hot_cold_t) { return tc_new(size); }
void* operator new[](size_t size, __hot_cold_t) { return tc_newarray(size); }
void* operator new(size_t size, const std::nothrow_t& nothrow, __hot_cold_t) noexcept {
  return tc_new_nothrow(size, nothrow);
}
void* operator new[](size_t size, const std::nothrow_t& nothrow, __hot_cold_t) noexcept {
  return tc_newarray_nothrow(size, nothrow);
}
void* operator new(size_t size, std::align_val_t alignment, __hot_cold_t) {
  return tc_new_aligned(size, alignment);
}
void* operator new[](size_t size, std::align_val_t alignment, __hot_cold_t) {
  return tc_newarray_aligned(size, alignment);
}
void* operator new(size_t size, std::align_val_t alignment, const std::nothrow_t& nothrow,
                   __hot_cold_t) noexcept {
  return tc_new_aligned_nothrow(size, alignment, nothrow);
}
void* operator new[](size_t size, std::align_val_t alignment, const std::nothrow_t& nothrow,
                     __hot_cold_t) noexcept {
  return tc_newarray_aligned_nothrow(size, alignment, nothrow);
}
#pragma GCC visibility pop
