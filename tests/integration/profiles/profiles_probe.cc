// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// profiles_probe PATH...: allocates at kSites call sites, which are functions of their own, and
// writes a heap profile to each path. Prints 1 or 0 for each. Site number n holds n % 7 + 1 blocks
// of 100 * (n % 10 + 1) bytes, times PROBE_TIMES.

#include <cstdio>
#include <cstdlib>

extern "C" bool tcmalloc_write_heap_profile(const char* path);

namespace {

constexpr int kSites = 1000;

void* kept[kSites][7];
size_t times = 1;

}  // namespace

// Readers of profiles drop the arguments of templates, so that each site has a name of its own.
// Three digits have a 1 before them, because a number that begins with 0 is octal.
#define SITE(digits)                                                            \
  extern "C" __attribute__((noinline)) void Site##digits() {                    \
    constexpr int kNumber = 1##digits - 1000;                                   \
    for (int i = 0; i < kNumber % 7 + 1; ++i) {                                 \
      kept[kNumber][i] = std::malloc(times * size_t{100 * (kNumber % 10 + 1)}); \
    }                                                                           \
  }
#define CALL(digits) Site##digits();
#define TEN(M, d) M(d##0) M(d##1) M(d##2) M(d##3) M(d##4) M(d##5) M(d##6) M(d##7) M(d##8) M(d##9)
#define HUNDRED(M, d) \
  TEN(M, d##0)        \
  TEN(M, d##1)        \
  TEN(M, d##2)        \
  TEN(M, d##3) TEN(M, d##4) TEN(M, d##5) TEN(M, d##6) TEN(M, d##7) TEN(M, d##8) TEN(M, d##9)
#define THOUSAND(M) \
  HUNDRED(M, 0)     \
  HUNDRED(M, 1)     \
  HUNDRED(M, 2)     \
  HUNDRED(M, 3) HUNDRED(M, 4) HUNDRED(M, 5) HUNDRED(M, 6) HUNDRED(M, 7) HUNDRED(M, 8) HUNDRED(M, 9)

THOUSAND(SITE)

int main(int argc, char** argv) {
  if (const char* text = std::getenv("PROBE_TIMES")) times = std::strtoul(text, nullptr, 10);
  THOUSAND(CALL)
  for (int i = 1; i < argc; ++i) std::printf("%d\n", tcmalloc_write_heap_profile(argv[i]) ? 1 : 0);
  return 0;
}
