// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Probes for tracers: otel_memory:alloc and otel_memory:free, as OpenTelemetry's profilers expect
// them.

#ifndef TCMALLOC_HEAP_PROFILE_USDT_H_
#define TCMALLOC_HEAP_PROFILE_USDT_H_

#include <cstdint>

#include "base/attributes.h"

// How many tracers attach to each probe. They write these words from outside, whose places the
// notes in the file tell them.
extern "C" {
__attribute__((visibility("hidden"))) extern volatile uint16_t otel_memory_alloc_semaphore;
__attribute__((visibility("hidden"))) extern volatile uint16_t otel_memory_free_semaphore;
}

namespace tcmalloc {

// Tell tracers of a sample. Called only for samples, while somebody listens.
//
// `weighted_bytes` are those of all blocks for which it stands.
TCMALLOC_COLD void FireAllocProbe(uintptr_t block, uint64_t size, uint64_t weighted_bytes);
TCMALLOC_COLD void FireFreeProbe(uintptr_t block);

inline bool AllocProbeIsAttached() { return TCMALLOC_UNLIKELY(otel_memory_alloc_semaphore != 0); }
inline bool FreeProbeIsAttached() { return TCMALLOC_UNLIKELY(otel_memory_free_semaphore != 0); }

}  // namespace tcmalloc

#endif  // TCMALLOC_HEAP_PROFILE_USDT_H_
