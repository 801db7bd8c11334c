// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The meanings of a table's rows, for the documentation that is generated from it.

#ifndef TCMALLOC_REPORT_DOCUMENTED_ROWS_H_
#define TCMALLOC_REPORT_DOCUMENTED_ROWS_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <string_view>

namespace tcmalloc {

// Converts `rows`, which are constant and have a `meaning` each, to the rows that the library
// contains.
template <typename To, const auto& rows>
inline constexpr std::array<To, std::size(rows)> kWithoutMeanings = [] {
  std::array<To, std::size(rows)> without{};
  std::ranges::copy(rows, without.begin());
  return without;
}();

// A library in which nobody calls Of does not contain the texts, because no data refers to them.
template <const auto& rows>
class Meanings {
 public:
  static std::string_view Of(size_t row) {
    return {kText.data() + kStarts[row], kStarts[row + 1] - kStarts[row]};
  }

 private:
  static constexpr size_t kRows = std::size(rows);

  static constexpr std::array<size_t, kRows + 1> kStarts = [] {
    std::array<size_t, kRows + 1> starts{};
    for (size_t i = 0; i < kRows; ++i) starts[i + 1] = starts[i] + rows[i].meaning.size();
    return starts;
  }();
  static constexpr std::array<char, kStarts[kRows]> kText = [] {
    std::array<char, kStarts[kRows]> text{};
    for (size_t i = 0; i < kRows; ++i) {
      std::ranges::copy(rows[i].meaning, text.begin() + static_cast<std::ptrdiff_t>(kStarts[i]));
    }
    return text;
  }();
};

}  // namespace tcmalloc

#endif  // TCMALLOC_REPORT_DOCUMENTED_ROWS_H_
