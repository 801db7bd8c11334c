// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "heap_profile/usdt.h"

// A place for a breakpoint, and a note that describes it: the addresses of the place, of a byte by
// which tools recognise that the file was moved, and of the semaphore; then the names of provider
// and probe, and where the arguments are, each of 8 unsigned bytes. The format is version 3 of
// SystemTap's notes. They take up no memory when the file is loaded.
#define TCMALLOC_PROBE(name, arguments, ...)                                    \
  asm volatile(                                                                 \
      "1: nop\n"                                                                \
      ".pushsection .note.stapsdt, \"\", %%note\n"                              \
      ".balign 4\n"                                                             \
      ".4byte 3f - 2f, 5f - 4f, 3\n"                                            \
      "2: .asciz \"stapsdt\"\n"                                                 \
      "3: .balign 4\n"                                                          \
      "4: .8byte 1b, _.stapsdt.base, otel_memory_" name                         \
      "_semaphore\n"                                                            \
      ".asciz \"otel_memory\"\n"                                                \
      ".asciz \"" name                                                          \
      "\"\n"                                                                    \
      ".asciz \"" arguments                                                     \
      "\"\n"                                                                    \
      "5: .balign 4\n"                                                          \
      ".popsection\n"                                                           \
      ".ifndef _.stapsdt.base\n"                                                \
      ".pushsection .stapsdt.base, \"aG\", %%progbits, .stapsdt.base, comdat\n" \
      ".weak _.stapsdt.base\n"                                                  \
      ".hidden _.stapsdt.base\n"                                                \
      "_.stapsdt.base: .space 1\n"                                              \
      ".size _.stapsdt.base, 1\n"                                               \
      ".popsection\n"                                                           \
      ".endif\n" ::__VA_ARGS__)

extern "C" {
// Tools look for them in this section of the file.
__attribute__((section(".probes"), used)) volatile uint16_t otel_memory_alloc_semaphore = 0;
__attribute__((section(".probes"), used)) volatile uint16_t otel_memory_free_semaphore = 0;
}

namespace tcmalloc {

void FireAllocProbe(uintptr_t block, uint64_t size, uint64_t weighted_bytes) {
  TCMALLOC_PROBE("alloc", "8@%0 8@%1 8@%2", "r"(block), "r"(size), "r"(weighted_bytes));
}

void FireFreeProbe(uintptr_t block) { TCMALLOC_PROBE("free", "8@%0", "r"(block)); }

}  // namespace tcmalloc
