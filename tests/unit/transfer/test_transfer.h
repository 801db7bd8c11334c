// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A transfer cache with everything that it stands on, for tests.

#ifndef TCMALLOC_TESTS_UNIT_TRANSFER_TEST_TRANSFER_H_
#define TCMALLOC_TESTS_UNIT_TRANSFER_TEST_TRANSFER_H_

#include <cstdint>

#include "fakes/fake_batch_source.h"
#include "fakes/object_space.h"
#include "size_class/size_classes.h"
#include "transfer/chain_stack.h"
#include "transfer/transfer_cache.h"

namespace tcmalloc::testing {

// The CPU on which the calling thread runs, as far as its transfer caches are told.
inline thread_local uint32_t fake_cpu = 0;
inline uint32_t FakeCpu() { return fake_cpu; }

struct TestTransfer {
  using Cache = TransferCache<FakeBatchSource, FakeCpu>;
  static_assert(BatchSource<Cache>);

  static constexpr uint32_t kBatch = 16;
  static constexpr uint32_t kObjectBytes = 64;

  explicit TestTransfer(uint32_t max_chains) {
    central.Initialize(space, SizeClassFor(kObjectBytes));
    cache.Initialize(central, arrays, space.codec, kBatch, max_chains);
  }

  Cache* operator->() { return &cache; }

  ObjectSpace space;
  ChainArrays arrays{space.arena};
  FakeBatchSource central;
  Cache cache;
};

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_UNIT_TRANSFER_TEST_TRANSFER_H_
