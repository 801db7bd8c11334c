// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Arithmetic on numbers of any length in which every result is a new object: Fibonacci numbers and
// factorials are computed and then reduced digit by digit, with checks by a small modulus. Almost
// all blocks are small and die at once.
#include <cstring>
#include <memory>
#include <utility>

#include "common/block.h"
#include "common/options.h"
#include "common/report.h"

namespace tcmalloc::bench {
namespace {

// A natural number: 32-bit digits, the lowest first, allocated with exactly the length needed.
// Immutable once built.
class Natural {
 public:
  explicit Natural(uint32_t digit) : Natural(digit == 0 ? 0 : 1, 0) {
    if (digit != 0) digits()[0] = digit;
  }
  Natural(Natural&& other) noexcept : storage_(std::exchange(other.storage_, nullptr)) {}
  Natural& operator=(Natural&& other) noexcept {
    std::swap(storage_, other.storage_);
    return *this;
  }
  ~Natural() { std::free(storage_); }

  friend Natural operator+(const Natural& a, const Natural& b) {
    if (a.length() < b.length()) return b + a;
    Natural sum(a.length() + 1, 0);
    uint64_t carry = 0;
    for (size_t i = 0; i < a.length(); ++i) {
      carry += uint64_t{a.digits()[i]} + (i < b.length() ? b.digits()[i] : 0);
      sum.digits()[i] = static_cast<uint32_t>(carry);
      carry >>= 32;
    }
    sum.digits()[a.length()] = static_cast<uint32_t>(carry);
    return sum.Trimmed();
  }

  friend Natural operator*(const Natural& a, const Natural& b) {
    Natural product(a.length() + b.length(), 0);
    for (size_t i = 0; i < a.length(); ++i) {
      uint64_t carry = 0;
      for (size_t j = 0; j < b.length(); ++j) {
        carry += uint64_t{a.digits()[i]} * b.digits()[j] + product.digits()[i + j];
        product.digits()[i + j] = static_cast<uint32_t>(carry);
        carry >>= 32;
      }
      product.digits()[i + b.length()] = static_cast<uint32_t>(carry);
    }
    return product.Trimmed();
  }

  Natural Quotient(uint32_t divisor) const {
    Natural quotient(length(), 0);
    uint64_t rest = 0;
    for (size_t i = length(); i > 0; --i) {
      rest = rest << 32 | digits()[i - 1];
      quotient.digits()[i - 1] = static_cast<uint32_t>(rest / divisor);
      rest %= divisor;
    }
    return quotient.Trimmed();
  }

  uint32_t Remainder(uint32_t divisor) const {
    uint64_t rest = 0;
    for (size_t i = length(); i > 0; --i) rest = (rest << 32 | digits()[i - 1]) % divisor;
    return static_cast<uint32_t>(rest);
  }

  bool is_zero() const { return length() == 0; }

 private:
  // `length` digits of value zero; the second argument only tells this from the other constructor.
  Natural(size_t length, int) {
    const size_t bytes = sizeof(size_t) + length * sizeof(uint32_t);
    storage_ = static_cast<size_t*>(std::malloc(bytes));
    if (storage_ == nullptr) Fail("no memory for %zu digits", length);
    std::memset(storage_, 0, bytes);
    *storage_ = length;
  }

  // A copy without leading zeros; the number itself where it has none.
  Natural Trimmed() {
    size_t significant = length();
    while (significant > 0 && digits()[significant - 1] == 0) --significant;
    if (significant == length()) return std::move(*this);
    Natural trimmed(significant, 0);
    std::memcpy(trimmed.digits(), digits(), significant * sizeof(uint32_t));
    return trimmed;
  }

  size_t length() const { return *storage_; }
  const uint32_t* digits() const { return reinterpret_cast<const uint32_t*>(storage_ + 1); }
  uint32_t* digits() { return reinterpret_cast<uint32_t*>(storage_ + 1); }

  // The length, then the digits.
  size_t* storage_ = nullptr;
};

constexpr uint32_t kModulus = 1000003;

// Returns the number of arithmetic results, each of which was an object.
uint64_t RunFibonacci(uint64_t count) {
  Natural previous(0);
  Natural current(1);
  uint64_t expected_previous = 0;
  uint64_t expected = 1;
  for (uint64_t i = 1; i < count; ++i) {
    Natural next = previous + current;
    previous = std::move(current);
    current = std::move(next);
    expected_previous = std::exchange(expected, (expected + expected_previous) % kModulus);
  }
  if (current.Remainder(kModulus) != expected) Fail("a Fibonacci number is wrong");
  return count;
}

uint64_t RunFactorial(uint32_t count) {
  Natural product(1);
  for (uint32_t i = 2; i <= count; ++i) product = product * Natural(i);
  uint64_t results = uint64_t{2} * count;
  for (uint32_t i = count; i >= 2; --i, ++results) {
    if (product.Remainder(i) != 0) Fail("a factorial is not divisible by %u", i);
    product = product.Quotient(i);
  }
  if (product.Quotient(2).is_zero() && product.Remainder(2) == 1) return results;
  Fail("a factorial divided by its factors is not one");
}

int Main(int argc, char** argv) {
  uint64_t count = 40;
  uint64_t rounds = 60000;
  Options options("bignum", "Arithmetic on big numbers, an object for each result.");
  options.Number("count", &count, 2, 1 << 20, "Fibonacci numbers and factors in a round");
  options.Number("rounds", &rounds, 1, UINT64_MAX, "rounds");
  options.Parse(argc, argv);

  uint64_t ops = 0;
  const Stopwatch stopwatch;
  for (uint64_t round = 0; round < rounds; ++round) {
    ops += RunFibonacci(count * 2);
    ops += RunFactorial(static_cast<uint32_t>(count));
  }
  const Elapsed elapsed = stopwatch.Read();
  Report(ops, elapsed).Print();
  return 0;
}

}  // namespace
}  // namespace tcmalloc::bench

int main(int argc, char** argv) { return tcmalloc::bench::Main(argc, argv); }
