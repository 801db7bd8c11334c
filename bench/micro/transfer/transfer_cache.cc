// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// An operation moves one batch out of the transfer cache and in again.

#include "transfer/transfer_cache.h"

#include <cstdint>
#include <iterator>
#include <string>

#include "common/harness.h"
#include "heap/heap.h"

namespace tcmalloc::bench {
namespace {

void RunBatches(Harness& harness, size_t size) {
  const uint8_t c = SizeClassFor(size);
  Transfer& transfer = heap.transfer(c);
  const uint32_t batch = transfer.batch();
  const std::string suffix = "/size:" + std::to_string(kSizeClasses[c].size);
  const auto fetch_insert = [&](uint64_t n) {
    for (uint64_t i = 0; i < n; ++i) transfer.Insert(transfer.Fetch(batch));
  };
  harness.Run("transfer/fetch_insert" + suffix, fetch_insert);
  harness.RunThreads("transfer/fetch_insert/threads:2" + suffix, 2,
                     [&](int, uint64_t n) { fetch_insert(n); });
  // As a producer and a consumer do that are never at the same place.
  harness.Run("transfer/swing_of_8" + suffix, [&](uint64_t n) {
    Chain chains[8];
    for (uint64_t i = 0; i < n; i += std::size(chains)) {
      for (Chain& chain : chains) chain = transfer.Fetch(batch);
      for (const Chain& chain : chains) transfer.Insert(chain);
    }
  });
  transfer.Drain();
}

}  // namespace
}  // namespace tcmalloc::bench

int main(int argc, char** argv) {
  tcmalloc::bench::Harness harness(argc, argv);
  tcmalloc::heap.EnsureInitialized();
  for (size_t size : {64, 1024, 32768}) tcmalloc::bench::RunBatches(harness, size);
}
