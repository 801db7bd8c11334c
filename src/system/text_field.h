// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Takes fields from the front of a line of the kernel's files.

#ifndef TCMALLOC_SYSTEM_TEXT_FIELD_H_
#define TCMALLOC_SYSTEM_TEXT_FIELD_H_

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace tcmalloc {

// Removes the text before the delimiter from the front, and the delimiter. Removes all of it if
// there is none.
inline std::string_view TakeField(std::string_view* text, char delimiter) {
  const size_t length = std::min(text->find(delimiter), text->size());
  const std::string_view field(text->data(), length);
  text->remove_prefix(std::min(length + 1, text->size()));
  return field;
}

}  // namespace tcmalloc

#endif  // TCMALLOC_SYSTEM_TEXT_FIELD_H_
