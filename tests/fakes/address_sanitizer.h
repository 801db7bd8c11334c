// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Tells if the address sanitizer watches, which takes much of the address space and makes every
// frame of the stack larger. gcc defines a macro for it, clang has a feature.

#ifndef TCMALLOC_TESTS_FAKES_ADDRESS_SANITIZER_H_
#define TCMALLOC_TESTS_FAKES_ADDRESS_SANITIZER_H_

namespace tcmalloc::testing {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kAddressSanitizer = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
inline constexpr bool kAddressSanitizer = true;
#else
inline constexpr bool kAddressSanitizer = false;
#endif
#else
inline constexpr bool kAddressSanitizer = false;
#endif

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_FAKES_ADDRESS_SANITIZER_H_
