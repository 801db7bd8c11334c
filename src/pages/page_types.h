// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Pages of the heap and counts of them, as types on which only meaningful operations exist. A page
// here is a logical page of kPageSize bytes, fixed at configure time; the kernel's may differ.

#ifndef TCMALLOC_PAGES_PAGE_TYPES_H_
#define TCMALLOC_PAGES_PAGE_TYPES_H_

#include <compare>
#include <cstddef>
#include <cstdint>

#include "base/message.h"

#ifndef TCMALLOC_PAGE_SHIFT
#define TCMALLOC_PAGE_SHIFT 13
#endif

namespace tcmalloc {

inline constexpr int kPageShift = TCMALLOC_PAGE_SHIFT;
inline constexpr size_t kPageSize = size_t{1} << kPageShift;
// User space addresses of x86-64 and aarch64 without the opt-in extensions.
inline constexpr int kAddressBits = 48;

// A number of pages.
class Length {
 public:
  constexpr Length() = default;
  explicit constexpr Length(uintptr_t pages) : pages_(pages) {}

  // Returns the fewest pages that hold `bytes`. Requires bytes <= SIZE_MAX - kPageSize + 1.
  static constexpr Length FromBytesCeil(size_t bytes) {
    return Length((bytes + kPageSize - 1) >> kPageShift);
  }
  static constexpr Length Max() { return Length(UINTPTR_MAX >> kPageShift); }

  constexpr uintptr_t pages() const { return pages_; }
  constexpr size_t bytes() const { return pages_ << kPageShift; }

  constexpr Length& operator+=(Length other) {
    pages_ += other.pages_;
    return *this;
  }
  constexpr Length& operator-=(Length other) {
    pages_ -= other.pages_;
    return *this;
  }
  friend constexpr Length operator+(Length a, Length b) { return Length(a.pages_ + b.pages_); }
  friend constexpr Length operator-(Length a, Length b) { return Length(a.pages_ - b.pages_); }
  friend constexpr Length operator*(Length a, uintptr_t n) { return Length(a.pages_ * n); }
  friend constexpr auto operator<=>(const Length&, const Length&) = default;
  friend Message& operator<<(Message& message, const Length& length) {
    return message << uint64_t{length.pages_};
  }

 private:
  uintptr_t pages_ = 0;
};

// Work as std::min and std::max, but take values, so that constants need no place in memory.
constexpr Length ShorterOf(Length a, Length b) { return a < b ? a : b; }
constexpr Length LongerOf(Length a, Length b) { return a < b ? b : a; }

// The number of a page: its address divided by kPageSize.
class PageId {
 public:
  constexpr PageId() = default;
  explicit constexpr PageId(uintptr_t index) : index_(index) {}

  static PageId Containing(const void* address) {
    return PageId(reinterpret_cast<uintptr_t>(address) >> kPageShift);
  }

  constexpr uintptr_t index() const { return index_; }
  constexpr uintptr_t address() const { return index_ << kPageShift; }
  char* start() const { return reinterpret_cast<char*>(address()); }

  constexpr PageId& operator++() {
    ++index_;
    return *this;
  }
  friend constexpr PageId operator+(PageId page, Length n) {
    return PageId(page.index_ + n.pages());
  }
  friend constexpr PageId operator-(PageId page, Length n) {
    return PageId(page.index_ - n.pages());
  }
  friend constexpr Length operator-(PageId a, PageId b) { return Length(a.index_ - b.index_); }
  friend constexpr auto operator<=>(const PageId&, const PageId&) = default;
  friend Message& operator<<(Message& message, const PageId& page) {
    return message << uint64_t{page.index_};
  }

 private:
  uintptr_t index_ = 0;
};

// A run of pages; of length 0 for none.
struct PageRange {
  PageId first;
  Length length;

  constexpr PageId end() const { return first + length; }
};

}  // namespace tcmalloc

#endif  // TCMALLOC_PAGES_PAGE_TYPES_H_
