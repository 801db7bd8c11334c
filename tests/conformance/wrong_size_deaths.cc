// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <string>

#include "conformance/deaths.h"
#include "conformance/malloc_api.h"
#include "conformance/witness.h"

namespace tcmalloc::testing {
namespace {

using Size = std::size_t;

struct SizedCall {
  const char* name;
  void* (*make)(Size size);
  void (*give_back)(void* block, Size claimed);
  bool (*available)();
};

constexpr SizedCall kCalls[] = {
    {"delete", [](Size n) { return Api().new_plain(n); },
     [](void* p, Size n) { Api().delete_sized(p, n); }, [] { return true; }},
    {"delete[]", [](Size n) { return Api().new_array(n); },
     [](void* p, Size n) { Api().delete_array_sized(p, n); }, [] { return true; }},
    {"delete aligned", [](Size n) { return Api().new_aligned(n, std::align_val_t{64}); },
     [](void* p, Size n) { Api().delete_sized_aligned(p, n, std::align_val_t{64}); },
     [] { return true; }},
    {"free_sized", [](Size n) { return Api().malloc(n); },
     [](void* p, Size n) { Api().free_sized(p, n); }, [] { return Api().free_sized != nullptr; }},
    {"free_aligned_sized", [](Size n) { return Api().aligned_alloc(64, n); },
     [](void* p, Size n) { Api().free_aligned_sized(p, 64, n); },
     [] { return Api().free_aligned_sized != nullptr; }},
    {"sdallocx", [](Size n) { return Api().malloc(n); },
     [](void* p, Size n) { Api().sdallocx(p, n, 0); }, [] { return Api().sdallocx != nullptr; }},
};

struct Lie {
  Size size;
  Size claimed;
};

constexpr Lie kLies[] = {
    {32, 64},        {64, 32},          {64, 100000},      {100000, 64},     {16, 300000},
    {300000, 16},    {300000, 100000},  {300000, 4 << 20}, {4 << 20, 64},    {1000, 0},
    {0, 1000},       {8, 16},           {1024, 1025},      {262144, 262145}, {262145, 262144},
    {100, ~Size{0}}, {300000, 1 << 30},
};

// Neighbours of both sizes, given back with the wrong size; then blocks of both sizes, all held.
void LieAndAllocate(const SizedCall& call, const Lie& lie) {
  constexpr Size kVictims = 20;
  constexpr Size kHeld = 1000;
  const Size claimed = std::min(lie.claimed, Size{1} << 20);
  const Size count = std::max(lie.size, claimed) > 100000 ? 50 : kHeld;
  LiveBlocks live(2 * kHeld + kVictims);
  void* victims[kVictims];
  for (Size i = 0; i < kVictims; ++i) {
    victims[i] = call.make(lie.size);
    live.Add(call.make(lie.size), lie.size);
  }
  for (void* victim : victims) call.give_back(victim, lie.claimed);
  AllocateAndCheck(live, count, lie.size);
  AllocateAndCheck(live, count, claimed);
}

}  // namespace

void AddWrongSizeDeaths(Suite& suite) {
  for (const SizedCall& call : kCalls) {
    if (!call.available()) continue;
    for (const Lie& lie : kLies) {
      suite.Add(std::string("wrong size/") + call.name + "/" + std::to_string(lie.size) + " as " +
                    std::to_string(lie.claimed),
                [call, lie](Case& result) {
                  ExpectAbortOrSurvival(result, [&] { LieAndAllocate(call, lie); });
                });
    }
  }
}

}  // namespace tcmalloc::testing
