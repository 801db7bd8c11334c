// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Each operator new with a hint makes blocks of its own family: that of delete or of delete[].
#include <tcmalloc/new_extension.h>

#include <cstddef>
#include <initializer_list>
#include <new>

int main() {
  constexpr tcmalloc::hot_cold_t kHint{3};
  constexpr std::align_val_t kAlign{64};
  for (const size_t size : {size_t{1}, size_t{100}, size_t{5000}, size_t{300'000}}) {
    ::operator delete(::operator new(size, kHint), size);
    ::operator delete(::operator new(size, std::nothrow, kHint));
    ::operator delete(::operator new(size, kAlign, kHint), size, kAlign);
    ::operator delete(::operator new(size, kAlign, std::nothrow, kHint), kAlign);
    ::operator delete[](::operator new[](size, kHint), size);
    ::operator delete[](::operator new[](size, std::nothrow, kHint));
    ::operator delete[](::operator new[](size, kAlign, kHint), size, kAlign);
    ::operator delete[](::operator new[](size, kAlign, std::nothrow, kHint), kAlign);
  }
  return 0;
}
