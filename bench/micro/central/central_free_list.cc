// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// An operation fetches a batch from the central list and inserts it again.

#include "central/central_free_list.h"

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "common/harness.h"
#include "heap/heap.h"

namespace tcmalloc::bench {
namespace {

// While other batches are out, so that spans neither come nor go.
void RunBatches(Harness& harness, size_t size) {
  const uint8_t c = SizeClassFor(size);
  Central& central = heap.central(c);
  const uint32_t batch = kSizeClasses[c].batch;
  const std::string suffix = "/size:" + std::to_string(kSizeClasses[c].size);
  const auto fetch_insert = [&](uint64_t n) {
    for (uint64_t i = 0; i < n; ++i) central.Insert(central.Fetch(batch));
  };
  harness.Run("central/fetch_insert_with_new_span" + suffix, fetch_insert);

  std::mt19937_64 random(1);
  std::vector<Chain> chains;
  for (int i = 0; i < 100; ++i) chains.push_back(central.Fetch(batch));
  harness.Run("central/fetch_insert" + suffix, fetch_insert);
  harness.Run("central/fetch_insert_mixed" + suffix, [&](uint64_t n) {
    for (uint64_t i = 0; i < n; ++i) {
      Chain& chain = chains[random() % chains.size()];
      central.Insert(chain);
      chain = central.Fetch(batch);
    }
  });
  harness.RunThreads("central/fetch_insert/threads:2" + suffix, 2,
                     [&](int, uint64_t n) { fetch_insert(n); });
  for (Chain chain : chains) central.Insert(chain);
}

}  // namespace
}  // namespace tcmalloc::bench

int main(int argc, char** argv) {
  tcmalloc::bench::Harness harness(argc, argv);
  tcmalloc::heap.EnsureInitialized();
  for (size_t size : {8, 64, 1024, 32768}) tcmalloc::bench::RunBatches(harness, size);
}
