// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Three levels of check: always, debug (TCMALLOC_CHECK_LEVEL >= 1) and paranoid (>= 2). A failed
// comparison prints both values.

#ifndef TCMALLOC_BASE_CHECK_H_
#define TCMALLOC_BASE_CHECK_H_

#include "base/attributes.h"
#include "base/message.h"

#ifndef TCMALLOC_CHECK_LEVEL
#define TCMALLOC_CHECK_LEVEL 0
#endif

namespace tcmalloc {

inline constexpr bool kDebugChecks = TCMALLOC_CHECK_LEVEL >= 1;
inline constexpr bool kParanoidChecks = TCMALLOC_CHECK_LEVEL >= 2;

[[noreturn]] TCMALLOC_COLD inline void CheckFailed(const char* condition, const char* file,
                                                   int line) {
  Message message;
  message << file << ":" << line << ": check failed: " << condition;
  Crash(message);
}

template <typename A, typename B>
[[noreturn]] TCMALLOC_COLD void ComparisonFailed(const char* condition, const A& a, const B& b,
                                                 const char* file, int line) {
  Message message;
  message << file << ":" << line << ": check failed: " << condition << " (" << a << " vs " << b
          << ")";
  Crash(message);
}

}  // namespace tcmalloc

#define TCMALLOC_CHECK(condition)                    \
  (TCMALLOC_LIKELY(condition) ? static_cast<void>(0) \
                              : ::tcmalloc::CheckFailed(#condition, __FILE__, __LINE__))

#define TCMALLOC_CHECK_COMPARISON(a, op, b)                                               \
  do {                                                                                    \
    const auto& tcmalloc_check_a = (a);                                                   \
    const auto& tcmalloc_check_b = (b);                                                   \
    if (TCMALLOC_UNLIKELY(!(tcmalloc_check_a op tcmalloc_check_b))) {                     \
      ::tcmalloc::ComparisonFailed(#a " " #op " " #b, tcmalloc_check_a, tcmalloc_check_b, \
                                   __FILE__, __LINE__);                                   \
    }                                                                                     \
  } while (false)

#define TCMALLOC_CHECK_EQ(a, b) TCMALLOC_CHECK_COMPARISON(a, ==, b)
#define TCMALLOC_CHECK_LE(a, b) TCMALLOC_CHECK_COMPARISON(a, <=, b)

#define TCMALLOC_DCHECK(condition)                                     \
  do {                                                                 \
    if constexpr (::tcmalloc::kDebugChecks) TCMALLOC_CHECK(condition); \
  } while (false)
#define TCMALLOC_DCHECK_EQ(a, b)                                     \
  do {                                                               \
    if constexpr (::tcmalloc::kDebugChecks) TCMALLOC_CHECK_EQ(a, b); \
  } while (false)
#define TCMALLOC_DCHECK_LE(a, b)                                     \
  do {                                                               \
    if constexpr (::tcmalloc::kDebugChecks) TCMALLOC_CHECK_LE(a, b); \
  } while (false)

#endif  // TCMALLOC_BASE_CHECK_H_
