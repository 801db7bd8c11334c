// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Calls all of tcmalloc/new_extension.h and tcmalloc/alloc_at_least.h.

#include <malloc.h>
#include <tcmalloc/alloc_at_least.h>
#include <tcmalloc/new_extension.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <new>

namespace {

#define CHECK(condition)                                                   \
  do {                                                                     \
    if (!(condition)) {                                                    \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                        \
    }                                                                      \
  } while (false)

using std::align_val_t;
using std::nothrow;
using tcmalloc::hot_cold_t;
using tcmalloc::sized_ptr_t;

constexpr size_t kSizes[] = {0,      1,       7,       8,       9,       16,
                             17,     100,     1000,    4096,    8192,    8193,
                             30'000, 262'144, 262'145, 300'000, 1 << 20, (4 << 20) + 1};
constexpr size_t kAlignments[] = {1, 8, 16, 64, 4096, 1 << 16};
constexpr hot_cold_t kHints[] = {hot_cold_t{0}, hot_cold_t{1}, hot_cold_t{128}, hot_cold_t{255}};
constexpr size_t kTooLarge = SIZE_MAX / 2;

// The whole block is the caller's.
void CheckSized(void* block, size_t n, size_t size, size_t alignment = 1) {
  CHECK(block != nullptr && n >= size);
  CHECK(n == malloc_usable_size(block));
  CHECK(reinterpret_cast<uintptr_t>(block) % alignment == 0);
  std::memset(block, 0xa5, n);
}

size_t Log2(size_t alignment) {
  size_t log = 0;
  while (size_t{1} << log < alignment) ++log;
  return log;
}

// Every size from the one that was asked for to the one that was given is right.
void CheckSizeReturning(size_t size) {
  for (const int part : {0, 1, 2}) {
    const sized_ptr_t made = tcmalloc_size_returning_operator_new(size);
    CheckSized(made.p, made.n, size);
    CHECK(made.n == nallocx(size, 0));
    ::operator delete(made.p, size + (made.n - size) * static_cast<size_t>(part) / 2);
  }
  const sized_ptr_t quiet = tcmalloc_size_returning_operator_new_nothrow(size);
  CheckSized(quiet.p, quiet.n, size);
  sdallocx(quiet.p, quiet.n, 0);
  for (const hot_cold_t hint : kHints) {
    const sized_ptr_t made = tcmalloc_size_returning_operator_new_hot_cold(size, hint);
    CheckSized(made.p, made.n, size);
    ::operator delete(made.p);
    const sized_ptr_t other = tcmalloc_size_returning_operator_new_hot_cold_nothrow(size, hint);
    CheckSized(other.p, other.n, size);
    free_sized(other.p, size);
  }
}

void CheckSizeReturningAligned(size_t size, size_t alignment) {
  const align_val_t align{alignment};
  const sized_ptr_t made = tcmalloc_size_returning_operator_new_aligned(size, align);
  CheckSized(made.p, made.n, size, alignment);
  CHECK(made.n == nallocx(size, MALLOCX_LG_ALIGN(Log2(alignment))));
  ::operator delete(made.p, made.n, align);
  const sized_ptr_t quiet = tcmalloc_size_returning_operator_new_aligned_nothrow(size, align);
  CheckSized(quiet.p, quiet.n, size, alignment);
  sdallocx(quiet.p, size, MALLOCX_LG_ALIGN(Log2(alignment)));
  for (const hot_cold_t hint : kHints) {
    const sized_ptr_t a = tcmalloc_size_returning_operator_new_aligned_hot_cold(size, align, hint);
    CheckSized(a.p, a.n, size, alignment);
    ::operator delete(a.p, align);
    const sized_ptr_t b =
        tcmalloc_size_returning_operator_new_aligned_hot_cold_nothrow(size, align, hint);
    CheckSized(b.p, b.n, size, alignment);
    free_aligned_sized(b.p, alignment, b.n);
  }
}

void CheckHints(size_t size, size_t alignment) {
  const align_val_t align{alignment};
  for (const hot_cold_t hint : kHints) {
    for (void* block : {::operator new(size, hint), ::operator new(size, nothrow, hint)}) {
      CheckSized(block, malloc_usable_size(block), size);
      ::operator delete(block, size);
    }
    for (void* block : {::operator new[](size, hint), ::operator new[](size, nothrow, hint)}) {
      CheckSized(block, malloc_usable_size(block), size);
      ::operator delete[](block, size);
    }
    for (void* block :
         {::operator new(size, align, hint), ::operator new(size, align, nothrow, hint)}) {
      CheckSized(block, malloc_usable_size(block), size, alignment);
      ::operator delete(block, size, align);
    }
    for (void* block :
         {::operator new[](size, align, hint), ::operator new[](size, align, nothrow, hint)}) {
      CheckSized(block, malloc_usable_size(block), size, alignment);
      ::operator delete[](block, size, align);
    }
  }
}

void CheckAtLeast(size_t size) {
  const alloc_result_t made = alloc_at_least(size);
  CheckSized(made.ptr, made.size, size);
  free_sized(made.ptr, made.size);
  for (const size_t alignment : kAlignments) {
    const alloc_result_t aligned = aligned_alloc_at_least(alignment, size);
    CheckSized(aligned.ptr, aligned.size, size, alignment);
    free_aligned_sized(aligned.ptr, alignment, size);
  }
}

int handler_calls = 0;
void CountAndGiveUp() {
  if (++handler_calls % 3 == 0) std::set_new_handler(nullptr);
}

// The new handler is called three times, and then there is none.
template <typename F>
void ExpectBadAlloc(F f) {
  handler_calls = 0;
  std::set_new_handler(CountAndGiveUp);
  bool thrown = false;
  try {
    f();
  } catch (const std::bad_alloc&) {
    thrown = true;
  }
  CHECK(thrown && handler_calls == 3);
}

template <typename F>
void ExpectNothing(F f) {
  handler_calls = 0;
  std::set_new_handler(CountAndGiveUp);
  const sized_ptr_t made = f();
  CHECK(made.p == nullptr && made.n == 0 && handler_calls == 3);
}

void CheckFailures() {
  constexpr hot_cold_t kHint{7};
  constexpr align_val_t kAlign{64};
  ExpectBadAlloc([] { static_cast<void>(tcmalloc_size_returning_operator_new(kTooLarge)); });
  ExpectBadAlloc([] { static_cast<void>(__size_returning_new_hot_cold(kTooLarge, kHint)); });
  ExpectBadAlloc([] { static_cast<void>(__size_returning_new_aligned(kTooLarge, kAlign)); });
  ExpectBadAlloc(
      [] { static_cast<void>(__size_returning_new_aligned_hot_cold(kTooLarge, kAlign, kHint)); });
  ExpectBadAlloc([] { static_cast<void>(::operator new(kTooLarge, kHint)); });
  ExpectBadAlloc([] { static_cast<void>(::operator new[](kTooLarge, kHint)); });
  ExpectBadAlloc([] { static_cast<void>(::operator new(kTooLarge, kAlign, kHint)); });
  ExpectBadAlloc([] { static_cast<void>(::operator new[](kTooLarge, kAlign, kHint)); });
  ExpectNothing([] { return tcmalloc_size_returning_operator_new_nothrow(kTooLarge); });
  ExpectNothing(
      [] { return tcmalloc_size_returning_operator_new_hot_cold_nothrow(kTooLarge, kHint); });
  ExpectNothing(
      [] { return tcmalloc_size_returning_operator_new_aligned_nothrow(kTooLarge, kAlign); });
  ExpectNothing([] {
    return tcmalloc_size_returning_operator_new_aligned_hot_cold_nothrow(kTooLarge, kAlign, kHint);
  });
  std::set_new_handler(nullptr);
  CHECK(::operator new(kTooLarge, nothrow, kHint) == nullptr);
  CHECK(::operator new[](kTooLarge, nothrow, kHint) == nullptr);
  CHECK(::operator new(kTooLarge, kAlign, nothrow, kHint) == nullptr);
  CHECK(::operator new[](kTooLarge, kAlign, nothrow, kHint) == nullptr);
}

void CheckFailuresOfC() {
  errno = 0;
  alloc_result_t made = alloc_at_least(kTooLarge);
  CHECK(made.ptr == nullptr && made.size == 0 && errno == ENOMEM);
  for (const size_t alignment : {size_t{0}, size_t{3}, size_t{48}, SIZE_MAX}) {
    errno = 0;
    made = aligned_alloc_at_least(alignment, 100);
    CHECK(made.ptr == nullptr && made.size == 0 && errno == EINVAL);
  }
  errno = 0;
  made = aligned_alloc_at_least(64, kTooLarge);
  CHECK(made.ptr == nullptr && made.size == 0 && errno == ENOMEM);
  CHECK(nallocx(SIZE_MAX, 0) == 0);
  sdallocx(nullptr, 100, 0);
  free_sized(nullptr, 100);
  free_aligned_sized(nullptr, 64, 100);
}

}  // namespace

int main() {
  for (const size_t size : kSizes) {
    errno = 77;
    CheckSizeReturning(size);
    for (const size_t alignment : kAlignments) {
      CheckSizeReturningAligned(size, alignment);
      CheckHints(size, alignment);
    }
    CheckAtLeast(size);
    CHECK(errno == 77);
  }
  CheckFailures();
  CheckFailuresOfC();
  return 0;
}
