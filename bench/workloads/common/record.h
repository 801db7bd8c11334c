// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
#ifndef TCMALLOC_BENCH_WORKLOADS_COMMON_RECORD_H_
#define TCMALLOC_BENCH_WORKLOADS_COMMON_RECORD_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "common/block.h"

namespace tcmalloc::bench {

// A block that knows its size and can stand in a list, so that workloads whose resident memory is
// the result need no other memory to keep track of their blocks.
struct Record {
  Record* next;
  size_t size;
  // BlockWord() of this block while it is live, else something different.
  uint64_t word;
};

// Allocates `size` bytes, at least sizeof(Record), and touches the beginning and the last byte.
inline Record* NewRecord(size_t size) {
  auto* record = static_cast<Record*>(std::malloc(size));
  if (record == nullptr) [[unlikely]]
    Fail("no memory for %zu bytes", size);
  reinterpret_cast<char*>(record)[size - 1] = 0;
  record->next = nullptr;
  record->size = size;
  record->word = BlockWord(record, size);
  return record;
}

inline void FreeRecord(Record* record) {
  if (record->word != BlockWord(record, record->size)) [[unlikely]] {
    FailOverwritten({record, record->size});
  }
  record->word = 0;
  Escape(record);
  std::free(record);
}

}  // namespace tcmalloc::bench

#endif  // TCMALLOC_BENCH_WORKLOADS_COMMON_RECORD_H_
