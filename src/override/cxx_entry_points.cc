// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// operator new and operator delete in all replaceable forms, and their tc_ names.

#include <gperftools/tcmalloc.h>

#include <new>

#include "override/blocks.h"
#include "override/operator_new.h"
#include "override/out_of_memory.h"

// Each function has a C++ name and the tc_ name that gperftools gave it. The table gives, for every
// function: both names, result, parameters with names, and body.
#define TCMALLOC_DEFINE_OPERATOR(cxx_name, c_name, result, parameters, specifier, body)          \
  extern "C" TCMALLOC_EXPORT result c_name parameters specifier body TCMALLOC_EXPORT_FAST result \
      cxx_name parameters specifier body

// clang-format off
#define TCMALLOC_FOR_EACH_OPERATOR(DEFINE)                                                      \
  DEFINE(operator new, tc_new, void*, (size_t size), ,                                          \
         { return tcmalloc::New(size); })                                                       \
  DEFINE(operator new[], tc_newarray, void*, (size_t size), ,                                   \
         { return tcmalloc::NewArray(size); })                                                  \
  DEFINE(operator new, tc_new_nothrow, void*, (size_t size, const std::nothrow_t&), noexcept,   \
         { return tcmalloc::NewNoThrow(size); })                                                \
  DEFINE(operator new[], tc_newarray_nothrow, void*, (size_t size, const std::nothrow_t&),      \
         noexcept, { return tcmalloc::NewArrayNoThrow(size); })                                 \
  DEFINE(operator new, tc_new_aligned, void*, (size_t size, std::align_val_t alignment), ,      \
         { return tcmalloc::NewAligned(size, alignment); })                                     \
  DEFINE(operator new[], tc_newarray_aligned, void*,                                            \
         (size_t size, std::align_val_t alignment), ,                                           \
         { return tcmalloc::NewArrayAligned(size, alignment); })                                \
  DEFINE(operator new, tc_new_aligned_nothrow, void*,                                           \
         (size_t size, std::align_val_t alignment, const std::nothrow_t&), noexcept,            \
         { return tcmalloc::NewAlignedNoThrow(size, alignment); })                              \
  DEFINE(operator new[], tc_newarray_aligned_nothrow, void*,                                    \
         (size_t size, std::align_val_t alignment, const std::nothrow_t&), noexcept,            \
         { return tcmalloc::NewArrayAlignedNoThrow(size, alignment); })                         \
  DEFINE(operator delete, tc_delete, void, (void* block), noexcept,                             \
         { Blocks::Delete(block); })                                                            \
  DEFINE(operator delete[], tc_deletearray, void, (void* block), noexcept,                      \
         { Blocks::DeleteArray(block); })                                                       \
  DEFINE(operator delete, tc_delete_nothrow, void, (void* block, const std::nothrow_t&),        \
         noexcept, { Blocks::DeleteNoThrow(block); })                                           \
  DEFINE(operator delete[], tc_deletearray_nothrow, void, (void* block, const std::nothrow_t&), \
         noexcept, { Blocks::DeleteArrayNoThrow(block); })                                      \
  DEFINE(operator delete, tc_delete_sized, void, (void* block, size_t size), noexcept,          \
         { Blocks::DeleteSized(block, size); })                                                 \
  DEFINE(operator delete[], tc_deletearray_sized, void, (void* block, size_t size), noexcept,   \
         { Blocks::DeleteArraySized(block, size); })                                            \
  DEFINE(operator delete, tc_delete_aligned, void, (void* block, std::align_val_t alignment),   \
         noexcept,                                                                              \
         { Blocks::DeleteAligned(block, tcmalloc::Bytes(alignment)); })                         \
  DEFINE(operator delete[], tc_deletearray_aligned, void, (void* block, std::align_val_t        \
         alignment),                                                                            \
         noexcept, { Blocks::DeleteArrayAligned(block, tcmalloc::Bytes(alignment)); })          \
  DEFINE(operator delete, tc_delete_aligned_nothrow, void,                                      \
         (void* block, std::align_val_t alignment, const std::nothrow_t&), noexcept,            \
         { Blocks::DeleteAlignedNoThrow(block, tcmalloc::Bytes(alignment)); })                  \
  DEFINE(operator delete[], tc_deletearray_aligned_nothrow, void,                               \
         (void* block, std::align_val_t alignment, const std::nothrow_t&), noexcept,            \
         { Blocks::DeleteArrayAlignedNoThrow(block, tcmalloc::Bytes(alignment)); })             \
  DEFINE(operator delete, tc_delete_sized_aligned, void,                                        \
         (void* block, size_t size, std::align_val_t alignment), noexcept,                      \
         { Blocks::DeleteSizedAligned(block, size, tcmalloc::Bytes(alignment)); })              \
  DEFINE(operator delete[], tc_deletearray_sized_aligned, void,                                 \
         (void* block, size_t size, std::align_val_t alignment), noexcept,                      \
         { Blocks::DeleteArraySizedAligned(block, size, tcmalloc::Bytes(alignment)); })
// clang-format on

using tcmalloc::Blocks;

namespace tcmalloc {
namespace {

constexpr size_t Bytes(std::align_val_t alignment) { return static_cast<size_t>(alignment); }

}  // namespace
}  // namespace tcmalloc

TCMALLOC_FOR_EACH_OPERATOR(TCMALLOC_DEFINE_OPERATOR)

extern "C" {

// Lets malloc and its kin call the new handler too (1) or not (0). Returns the previous mode.
TCMALLOC_EXPORT int tc_set_new_mode(int mode) noexcept {
  using tcmalloc::NewModeRetry;
  const NewModeRetry retry = mode != 0 ? tcmalloc::RetryOrNull : nullptr;
  return tcmalloc::new_mode_retry.exchange(retry, std::memory_order_relaxed) != nullptr;
}

TCMALLOC_EXPORT int tc_query_new_mode() noexcept {
  return tcmalloc::new_mode_retry.load(std::memory_order_relaxed) != nullptr;
}

}  // extern "C"
