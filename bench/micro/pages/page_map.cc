// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Looking up addresses: the class window, and the span map.

#include "pages/page_map.h"

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "common/harness.h"
#include "heap/heap.h"

namespace tcmalloc::bench {
namespace {

// Addresses in `spans` spans, in random order.
std::vector<void*> Addresses(size_t spans) {
  constexpr size_t kAddresses = 1 << 14;  // a power of two
  const uint8_t c = SizeClassFor(64);
  std::vector<Span*> all;
  for (size_t i = 0; i < spans; ++i) {
    Span* span = heap.page_heap().New(Length(kSizeClasses[c].pages));
    span->state = Span::State::kSmall;
    span->size_class = c;
    heap.page_map().RegisterSmall(span);
    all.push_back(span);
  }
  std::mt19937_64 random(1);
  std::vector<void*> addresses;
  while (addresses.size() < kAddresses) {
    const Span* span = all[random() % all.size()];
    addresses.push_back(span->start() + random() % span->bytes());
  }
  return addresses;
}

void RunLookups(Harness& harness, size_t spans) {
  const std::vector<void*> addresses = Addresses(spans);
  const PageMap& map = heap.page_map();
  const std::string suffix = "/spans:" + std::to_string(spans);
  const size_t mask = addresses.size() - 1;
  harness.Run("pages/class_in_window" + suffix, [&](uint64_t n) {
    for (uint64_t i = 0; i < n; ++i) {
      const uintptr_t page = PageId::Containing(addresses[i & mask]).index();
      if (page << kPageShift < map.window_limit()) Use(map.window()[page]);
    }
  });
  harness.Run("pages/find_in_use" + suffix, [&](uint64_t n) {
    for (uint64_t i = 0; i < n; ++i) Use(map.FindInUse(addresses[i & mask]));
  });
}

}  // namespace
}  // namespace tcmalloc::bench

int main(int argc, char** argv) {
  tcmalloc::bench::Harness harness(argc, argv);
  tcmalloc::heap.EnsureInitialized();
  for (size_t spans : {1, 100, 10'000}) tcmalloc::bench::RunLookups(harness, spans);
}
