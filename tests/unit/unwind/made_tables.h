// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Unwind tables that are made byte by byte.

#ifndef TCMALLOC_TESTS_UNIT_UNWIND_MADE_TABLES_H_
#define TCMALLOC_TESTS_UNIT_UNWIND_MADE_TABLES_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace tcmalloc::testing {

// Appends the lowest bytes of a number.
inline void Append(std::string* bytes, uint64_t value, size_t size) {
  bytes->append(reinterpret_cast<const char*>(&value), size);
}

// Appends an entry of a table: a length, and its contents padded to a multiple of 4. Returns where
// it begins.
inline size_t AppendEntry(std::string* bytes, std::string_view contents) {
  const size_t start = bytes->size();
  const size_t padding = (4 - contents.size() % 4) % 4;
  Append(bytes, contents.size() + padding, 4);
  bytes->append(contents);
  bytes->append(padding, '\0');
  return start;
}

// Returns tables with a common entry and one function of `bytes` bytes, which begins where the
// tables do. Its pointers are of four bytes, and from where they are.
inline std::string TablesOfFunction(std::string_view common, uint32_t bytes,
                                    std::string_view instructions) {
  std::string tables;
  Append(&tables, 0x3b031b01, 4);  // encodings
  Append(&tables, 16, 4);          // .eh_frame from that field on
  Append(&tables, 1, 4);           // entries
  Append(&tables, 0, 4);           // the function begins where the table does
  const size_t place_of_entry = tables.size();
  Append(&tables, 0, 4);
  const size_t common_start = AppendEntry(&tables, common);

  std::string function;
  const size_t start = tables.size();
  Append(&function, start + 4 - common_start, 4);
  Append(&function, uint64_t{0} - (start + 8), 4);
  Append(&function, bytes, 4);
  Append(&function, 0, 1);  // no augmentation
  function += instructions;
  AppendEntry(&tables, function);
  const auto entry = static_cast<uint32_t>(start);
  std::memcpy(tables.data() + place_of_entry, &entry, sizeof(entry));
  return tables;
}

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_UNIT_UNWIND_MADE_TABLES_H_
