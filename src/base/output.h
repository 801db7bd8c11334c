// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Writing to file descriptors of the program, from places where it expects no such thing.

#ifndef TCMALLOC_BASE_OUTPUT_H_
#define TCMALLOC_BASE_OUTPUT_H_

#include <string_view>

namespace tcmalloc {

// Both make their system calls directly, so that neither is a point of cancellation, and raise no
// SIGPIPE. They keep errno and ignore failures, because there is nobody to tell. Allocate nothing,
// take no lock and may be used in a signal handler.

// Writes all of `text` to `fd`, retrying interrupted and short writes. Waits as write does.
void WriteAll(int fd, std::string_view text);

// Writes `line`, of less than 4096 bytes, to `fd` as a whole; not at all where a reader does not
// make room for it within so many milliseconds. A file is written whatever that takes.
void WriteLineWithin(int fd, std::string_view line, int milliseconds);

}  // namespace tcmalloc

#endif  // TCMALLOC_BASE_OUTPUT_H_
