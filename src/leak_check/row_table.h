// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Sums up lost blocks by their stacks.

#ifndef TCMALLOC_LEAK_CHECK_ROW_TABLE_H_
#define TCMALLOC_LEAK_CHECK_ROW_TABLE_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "leak_check/block_index.h"
#include "leak_check/search_request.h"
#include "profile_format/scratch.h"

namespace tcmalloc {

// A hash table of the rows of a result. For one thread.
class RowTable {
 public:
  // Of at most `blocks` blocks.
  RowTable(SnapshotResult* result, size_t blocks)
      : result_(result),
        places_(std::bit_ceil(2 * std::min<size_t>(blocks + 1, SnapshotResult::kMostRows))) {}

  bool ok() const { return places_.data() != nullptr; }

  void Add(const Block& block, bool indirect) {
    LostRow& row = RowOf(block.stack);
    (indirect ? row.indirect_objects : row.objects) += 1;
    (indirect ? row.indirect_bytes : row.bytes) += block.bytes;
  }

  void Sort() {
    std::sort(result_->rows, result_->rows + result_->row_count,
              [](const LostRow& a, const LostRow& b) {
                const uint64_t bytes_of_a = a.bytes + a.indirect_bytes;
                const uint64_t bytes_of_b = b.bytes + b.indirect_bytes;
                return bytes_of_a != bytes_of_b ? bytes_of_a > bytes_of_b : a.stack < b.stack;
              });
  }

 private:
  LostRow& RowOf(uint32_t stack) {
    const uint32_t count = result_->row_count;
    const size_t last = places_.size() - 1;
    size_t place = stack * uint64_t{0x9E3779B97F4A7C15} >> 32 & last;
    for (; places_[place] != 0; place = (place + 1) & last) {
      LostRow& row = result_->rows[places_[place] - 1];
      if (row.stack == stack) return row;
    }
    if (count == SnapshotResult::kMostRows) return result_->rows[count - 1];
    result_->rows[count] = LostRow{.stack = stack};
    result_->row_count = count + 1;
    places_[place] = count + 1;
    return result_->rows[count];
  }

  SnapshotResult* result_;
  Scratch<uint32_t> places_;  // one more than the index of a row
};

}  // namespace tcmalloc

#endif  // TCMALLOC_LEAK_CHECK_ROW_TABLE_H_
