// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Reads short files of the kernel that hold one line.

#ifndef TCMALLOC_SYSTEM_FIRST_LINE_H_
#define TCMALLOC_SYSTEM_FIRST_LINE_H_

#include <span>
#include <string_view>

namespace tcmalloc {

// Reads the first line of the file at `path` into `buffer`, and returns it without its newline.
// Returns an empty line if the file cannot be read or the line is too long. Sets *interfered if
// that says nothing about the file: see LineReader::interfered. Allocates nothing. May change
// errno.
std::string_view ReadFirstLine(const char* path, std::span<char> buffer,
                               bool* interfered = nullptr);

}  // namespace tcmalloc

#endif  // TCMALLOC_SYSTEM_FIRST_LINE_H_
