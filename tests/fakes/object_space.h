// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Ground for small objects in tests: spans, a page map with its window, and a link codec.

#ifndef TCMALLOC_TESTS_FAKES_OBJECT_SPACE_H_
#define TCMALLOC_TESTS_FAKES_OBJECT_SPACE_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "fakes/fake_metadata.h"
#include "fakes/fake_span_source.h"
#include "fakes/fake_window.h"
#include "pages/free_link.h"
#include "pages/metadata_arena.h"
#include "pages/page_map.h"

namespace tcmalloc::testing {

// Which memory lies in the address window. With kFirstBytes that is the first kWindowBytes of what
// the spans are cut from, but not the end word.
enum class Window { kAll, kFirstBytes, kNone };

class ObjectSpace {
 public:
  static constexpr size_t kReservedBytes = size_t{1} << 30;
  static constexpr size_t kWindowBytes = size_t{1} << 20;
  static constexpr uint64_t kSecret = 0x3c6ef372fe94f82b;

  explicit ObjectSpace(Window kind = Window::kAll) {
    const uintptr_t limit = LimitOf(kind);
    map->SetWindow(window.table(), limit);
    codec.Initialize(kSecret, limit, &kEndWord);
  }
  ~ObjectSpace() {
    const size_t first = reinterpret_cast<uintptr_t>(spans.begin()) >> kPageShift;
    std::memset(window.table() + first, 0, kReservedBytes >> kPageShift);
  }
  ObjectSpace(const ObjectSpace&) = delete;
  ObjectSpace& operator=(const ObjectSpace&) = delete;

  // The objects of a chain in its order; a test fails if its end is not where the count says.
  std::vector<void*> Objects(Chain chain) const {
    std::vector<void*> objects;
    if (chain.empty()) return objects;
    for (ObjectReference next = chain.head; next != codec.end;) {
      objects.push_back(ObjectAt(next));
      next = codec.Next(objects.back());
    }
    if (counts_hold) {
      EXPECT_EQ(objects.size(), chain.count);
    }
    return objects;
  }
  // Leaves no memory for records.
  void ExhaustMetadata() {
    metadata.exhausted = true;
    while (arena.Allocate(sizeof(uint64_t), alignof(uint64_t)) != nullptr) {
    }
  }
  // False where a test leaves chains with wrong counts.
  bool counts_hold = true;

  Chain MakeChain(const std::vector<void*>& objects) const {
    Chain chain{codec.end, 0};
    for (auto object = objects.rbegin(); object != objects.rend(); ++object) {
      codec.Link(*object, chain.head);
      chain = {ReferenceTo(*object), chain.count + 1};
    }
    return chain;
  }

  FakeMetadata metadata;
  MetadataArena arena{FakeMetadata::Source};
  FakeWindow& window = FakeWindow::OfAllTests();
  // Large for a stack.
  std::unique_ptr<PageMap> map = std::make_unique<PageMap>(arena);
  FakeSpanSource spans{*map, kReservedBytes};
  LinkCodec codec;

 private:
  static constexpr uint64_t kEndWord = 0;

  uintptr_t LimitOf(Window kind) const {
    if (kind == Window::kAll) return FakeWindow::kEndOfUserSpace;
    if (kind == Window::kNone) return kPageSize;
    return reinterpret_cast<uintptr_t>(spans.begin()) + kWindowBytes;
  }
};

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_FAKES_OBJECT_SPACE_H_
