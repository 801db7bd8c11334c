// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A variable that threads read and write without agreeing on an order.

#ifndef TCMALLOC_BASE_RELAXED_H_
#define TCMALLOC_BASE_RELAXED_H_

#include <atomic>

namespace tcmalloc {

// A T that is read and assigned like a plain one, by relaxed atomic accesses. It publishes nothing
// but itself.
template <typename T>
class Relaxed {
 public:
  constexpr Relaxed() = default;
  constexpr Relaxed(T value) : value_(value) {}  // NOLINT: converts like a T
  Relaxed(const Relaxed& other) : value_(other) {}
  Relaxed& operator=(const Relaxed& other) { return *this = static_cast<T>(other); }
  Relaxed& operator=(T value) {
    value_.store(value, std::memory_order_relaxed);
    return *this;
  }
  operator T() const { return value_.load(std::memory_order_relaxed); }  // NOLINT: likewise

  // A load and a store suffice, because one thread at a time changes it.
  Relaxed& operator+=(T n) { return *this = static_cast<T>(static_cast<T>(*this) + n); }
  Relaxed& operator-=(T n) { return *this = static_cast<T>(static_cast<T>(*this) - n); }

 private:
  std::atomic<T> value_{};
};

}  // namespace tcmalloc

#endif  // TCMALLOC_BASE_RELAXED_H_
