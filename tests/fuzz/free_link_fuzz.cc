// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The codec of free links under any secret and window: encoding, chains, and overwritten links.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "fuzz/fuzz_input.h"
#include "fuzz/fuzz_target.h"
#include "pages/free_link.h"

using namespace tcmalloc;
using namespace tcmalloc::testing;

namespace {

constexpr size_t kObjects = 64;
constexpr uint64_t kEndWord = 0;

// True if the codec must let `address` through.
bool IsValid(uintptr_t address, uintptr_t limit) {
  return address % 8 == 0 && address != 0 && address < limit;
}

void CheckAddress(const LinkCodec& codec, uintptr_t limit, uintptr_t address) {
  const ObjectReference reference = ReferenceTo(reinterpret_cast<void*>(address));
  TCMALLOC_CHECK_EQ(codec.InWindow(reference), IsValid(address, limit));
  if (address % 8 == 0) {
    TCMALLOC_CHECK_EQ(reinterpret_cast<uintptr_t>(ObjectAt(reference)), address);
  }
}

void CheckWord(const LinkCodec& codec, uintptr_t limit, uint64_t word) {
  TCMALLOC_CHECK_EQ(codec.Encode(codec.Decode(word)), word);
  TCMALLOC_CHECK_EQ(codec.Decode(codec.Encode(word)), word);
  if (!codec.InWindow(codec.Decode(word))) return;
  TCMALLOC_CHECK(IsValid(reinterpret_cast<uintptr_t>(ObjectAt(codec.Decode(word))), limit));
}

// Links objects in the order that the input says, overwrites the link of one, and follows the
// others.
void CheckChain(const LinkCodec& codec, uintptr_t limit, FuzzInput& input) {
  uint64_t objects[kObjects];
  std::vector<uint64_t*> order;
  ObjectReference head = codec.end;
  bool used[kObjects] = {};
  for (size_t count = input.Take<uint8_t>() % kObjects; count > 0; --count) {
    const size_t pick = input.Take<uint8_t>() % kObjects;
    if (used[pick]) continue;
    used[pick] = true;
    order.push_back(&objects[pick]);
    codec.Link(order.back(), head);
    head = ReferenceTo(order.back());
  }
  for (; !order.empty(); order.pop_back()) {
    TCMALLOC_CHECK_EQ(ObjectAt(head), static_cast<void*>(order.back()));
    head = codec.Next(order.back());
    const size_t byte = input.Take<uint8_t>() % sizeof(uint64_t);
    reinterpret_cast<char*>(order.back())[byte] = static_cast<char>(input.Take<uint8_t>());
    CheckWord(codec, limit, *order.back());
  }
  TCMALLOC_CHECK_EQ(head, codec.end);
}

}  // namespace

TCM_FUZZ_TARGET(free_link_fuzz, MutateBytes)(const uint8_t* data, size_t size) {
  FuzzInput input(data, size);
  const auto limit = input.Take<uintptr_t>() / 8 * 8;
  LinkCodec codec;
  codec.Initialize(input.Take<uint64_t>(), limit, &kEndWord);
  TCMALLOC_CHECK_EQ(codec.key * codec.inverse, uint64_t{1});
  TCMALLOC_CHECK(!codec.InWindow(codec.Decode(0)));
  CheckChain(codec, limit, input);
  while (!input.empty()) {
    const auto word = input.Take<uint64_t>();
    CheckAddress(codec, limit, word);
    CheckAddress(codec, limit, word / 8 * 8);
    CheckWord(codec, limit, word);
  }
  return 0;
}
