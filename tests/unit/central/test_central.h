// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A central free list with everything that it stands on, for tests.

#ifndef TCMALLOC_TESTS_UNIT_CENTRAL_TEST_CENTRAL_H_
#define TCMALLOC_TESTS_UNIT_CENTRAL_TEST_CENTRAL_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "central/central_free_list.h"
#include "fakes/object_space.h"
#include "size_class/size_classes.h"
#include "transfer/batch_source.h"

namespace tcmalloc::testing {

struct TestCentral {
  using List = CentralFreeList<FakeSpanSource>;
  static_assert(ChainSource<List>);

  explicit TestCentral(uint8_t c, Window window = Window::kAll) : size_class(c), space(window) {
    free_bits.Initialize(space.arena, info().objects, info().size);
    list.Initialize(c, space.spans, *space.map, space.codec, free_bits);
  }

  List* operator->() { return &list; }
  const SizeClassInfo& info() const { return kSizeClasses[size_class]; }

  std::vector<void*> Fetch(uint32_t wanted) { return space.Objects(list.Fetch(wanted)); }
  std::vector<void*> FetchLine() { return space.Objects(list.FetchLine()); }
  // Exactly `count` objects, by as many calls as it takes.
  std::vector<void*> FetchAll(size_t count) {
    std::vector<void*> objects;
    while (objects.size() < count) {
      const std::vector<void*> more = Fetch(static_cast<uint32_t>(count - objects.size()));
      if (more.empty()) break;
      objects.insert(objects.end(), more.begin(), more.end());
    }
    return objects;
  }
  void Insert(const std::vector<void*>& objects) { list.Insert(space.MakeChain(objects)); }

  Span* SpanOf(const void* object) const { return space.map->FindInUse(object); }

  const uint8_t size_class;
  ObjectSpace space;
  FreeBitsPool free_bits;
  List list;
};

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_UNIT_CENTRAL_TEST_CENTRAL_H_
