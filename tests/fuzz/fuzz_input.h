// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The bytes that a fuzzer made up, as what a target needs.

#ifndef TCMALLOC_TESTS_FUZZ_FUZZ_INPUT_H_
#define TCMALLOC_TESTS_FUZZ_FUZZ_INPUT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

namespace tcmalloc::testing {

// Read front to back, so that the beginning of an input means what it meant before more was
// appended. Whatever is beyond the end reads as zero.
class FuzzInput {
 public:
  FuzzInput(const uint8_t* data, size_t size) : bytes_(reinterpret_cast<const char*>(data), size) {}

  bool empty() const { return bytes_.empty(); }

  // A number of as many bytes as its type has.
  template <typename Number>
  Number Take() {
    Number number = 0;
    const size_t count = std::min(sizeof(number), bytes_.size());
    std::memcpy(&number, bytes_.data(), count);
    bytes_.remove_prefix(count);
    return number;
  }

  template <typename Value, size_t count>
  Value Pick(const Value (&choices)[count]) {
    static_assert(count <= 256);
    return choices[Take<uint8_t>() % count];
  }

  // Takes the text before the next `delimiter`, and the delimiter.
  std::string_view TakeUntil(char delimiter) {
    const std::string_view text = bytes_.substr(0, bytes_.find(delimiter));
    bytes_.remove_prefix(std::min(text.size() + 1, bytes_.size()));
    return text;
  }

  std::string_view TakeRest() { return std::exchange(bytes_, {}); }

 private:
  std::string_view bytes_;
};

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_FUZZ_FUZZ_INPUT_H_
