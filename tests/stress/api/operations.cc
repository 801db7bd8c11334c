// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "stress/api/operations.h"

#include <unistd.h>

#include <array>

#include "conformance/malloc_api.h"

namespace tcmalloc::testing {
namespace {

using Size = std::size_t;
using Align = std::align_val_t;

bool Always() { return true; }

std::size_t PageSize() {
  static const std::size_t size = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

// Splits a size that has a divisor, so that calloc and reallocarray multiply something.
Size Divisor(Size size) {
  for (const Size candidate : {Size{16}, Size{8}, Size{3}, Size{2}}) {
    if (size % candidate == 0) return candidate;
  }
  return 1;
}

void* PosixMemalign(Size size, Size alignment) {
  void* block = nullptr;
  return Api().posix_memalign(&block, alignment, size) == 0 ? block : nullptr;
}

// valloc and pvalloc promise a page; the caller's smaller wish is met by that. Functions that take
// the alignment back are not for their blocks.
constexpr Allocation kAllocations[] = {
    {"malloc", Family::kMalloc, false, false, [](Size n, Size) { return Api().malloc(n); }, Always},
    {"calloc", Family::kMalloc, false, true,
     [](Size n, Size) { return Api().calloc(Divisor(n), n / Divisor(n)); }, Always},
    {"realloc(NULL)", Family::kMalloc, false, false,
     [](Size n, Size) { return Api().realloc(nullptr, n); }, Always},
    {"reallocarray(NULL)", Family::kMalloc, false, false,
     [](Size n, Size) { return Api().reallocarray(nullptr, Divisor(n), n / Divisor(n)); }, Always},
    {"memalign", Family::kAligned, true, false, [](Size n, Size a) { return Api().memalign(a, n); },
     Always},
    {"aligned_alloc", Family::kAligned, true, false,
     [](Size n, Size a) { return Api().aligned_alloc(a, n); }, Always},
    {"posix_memalign", Family::kAligned, true, false, PosixMemalign, Always},
    {"valloc", Family::kMalloc, true, false,
     [](Size n, Size a) { return a > PageSize() ? Api().memalign(a, n) : Api().valloc(n); },
     Always},
    {"pvalloc", Family::kMalloc, true, false,
     [](Size n, Size a) { return a > PageSize() ? Api().memalign(a, n) : Api().pvalloc(n); },
     Always},
    {"new", Family::kNew, false, false, [](Size n, Size) { return Api().new_plain(n); }, Always},
    {"new nothrow", Family::kNew, false, false,
     [](Size n, Size) { return Api().new_nothrow(n, std::nothrow); }, Always},
    {"new[]", Family::kNewArray, false, false, [](Size n, Size) { return Api().new_array(n); },
     Always},
    {"new[] nothrow", Family::kNewArray, false, false,
     [](Size n, Size) { return Api().new_array_nothrow(n, std::nothrow); }, Always},
    {"new aligned", Family::kNewAligned, true, false,
     [](Size n, Size a) { return Api().new_aligned(n, Align{a}); }, Always},
    {"new aligned nothrow", Family::kNewAligned, true, false,
     [](Size n, Size a) { return Api().new_aligned_nothrow(n, Align{a}, std::nothrow); }, Always},
    {"new[] aligned", Family::kNewArrayAligned, true, false,
     [](Size n, Size a) { return Api().new_array_aligned(n, Align{a}); }, Always},
    {"new[] aligned nothrow", Family::kNewArrayAligned, true, false,
     [](Size n, Size a) { return Api().new_array_aligned_nothrow(n, Align{a}, std::nothrow); },
     Always},
};

Align AlignOf(const Block& block) { return Align{block.alignment}; }

constexpr Deallocation kDeallocations[] = {
    {"free", Family::kMalloc, [](const Block& b) { Api().free(b.address); }, Always},
    {"free_sized", Family::kMalloc, [](const Block& b) { Api().free_sized(b.address, b.size); },
     [] { return Api().free_sized != nullptr; }},
    {"sdallocx", Family::kMalloc, [](const Block& b) { Api().sdallocx(b.address, b.size, 0); },
     [] { return Api().sdallocx != nullptr; }},
    {"free", Family::kAligned, [](const Block& b) { Api().free(b.address); }, Always},
    {"free_aligned_sized", Family::kAligned,
     [](const Block& b) { Api().free_aligned_sized(b.address, b.alignment, b.size); },
     [] { return Api().free_aligned_sized != nullptr; }},
    {"sdallocx aligned", Family::kAligned,
     [](const Block& b) { Api().sdallocx(b.address, b.size, LgAlignFlag(b.alignment)); },
     [] { return Api().sdallocx != nullptr; }},
    {"delete", Family::kNew, [](const Block& b) { Api().delete_plain(b.address); }, Always},
    {"delete sized", Family::kNew, [](const Block& b) { Api().delete_sized(b.address, b.size); },
     Always},
    {"delete nothrow", Family::kNew,
     [](const Block& b) { Api().delete_nothrow(b.address, std::nothrow); }, Always},
    {"delete[]", Family::kNewArray, [](const Block& b) { Api().delete_array(b.address); }, Always},
    {"delete[] sized", Family::kNewArray,
     [](const Block& b) { Api().delete_array_sized(b.address, b.size); }, Always},
    {"delete[] nothrow", Family::kNewArray,
     [](const Block& b) { Api().delete_array_nothrow(b.address, std::nothrow); }, Always},
    {"delete aligned", Family::kNewAligned,
     [](const Block& b) { Api().delete_aligned(b.address, AlignOf(b)); }, Always},
    {"delete aligned nothrow", Family::kNewAligned,
     [](const Block& b) { Api().delete_aligned_nothrow(b.address, AlignOf(b), std::nothrow); },
     Always},
    {"delete sized aligned", Family::kNewAligned,
     [](const Block& b) { Api().delete_sized_aligned(b.address, b.size, AlignOf(b)); }, Always},
    {"delete[] aligned", Family::kNewArrayAligned,
     [](const Block& b) { Api().delete_array_aligned(b.address, AlignOf(b)); }, Always},
    {"delete[] aligned nothrow", Family::kNewArrayAligned,
     [](const Block& b) {
       Api().delete_array_aligned_nothrow(b.address, AlignOf(b), std::nothrow);
     },
     Always},
    {"delete[] sized aligned", Family::kNewArrayAligned,
     [](const Block& b) { Api().delete_array_sized_aligned(b.address, b.size, AlignOf(b)); },
     Always},
};

// A fixed-capacity list: the test may not allocate on its own account.
template <typename Element, std::size_t kCapacity>
struct List {
  std::array<Element, kCapacity> elements{};
  std::size_t count = 0;

  template <typename Keep>
  List(const Element (&all)[kCapacity], Keep keep) {
    for (const Element& element : all) {
      if (element.available() && keep(element)) elements[count++] = element;
    }
  }
  std::span<const Element> span() const { return {elements.data(), count}; }
};

using DeallocationList = List<Deallocation, std::size(kDeallocations)>;

DeallocationList ListFor(Family family) {
  return {kDeallocations, [family](const Deallocation& d) { return d.family == family; }};
}

}  // namespace

std::span<const Allocation> Allocations() {
  static const List<Allocation, std::size(kAllocations)> list{
      kAllocations, [](const Allocation&) { return true; }};
  return list.span();
}

std::span<const Deallocation> Deallocations(Family family) {
  // In the order of the enumerators.
  static const DeallocationList lists[] = {
      ListFor(Family::kMalloc),   ListFor(Family::kAligned),    ListFor(Family::kNew),
      ListFor(Family::kNewArray), ListFor(Family::kNewAligned), ListFor(Family::kNewArrayAligned)};
  return lists[static_cast<std::size_t>(family)].span();
}

}  // namespace tcmalloc::testing
