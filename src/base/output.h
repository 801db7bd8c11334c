// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Writes to file descriptors of the program at moments when it expects no output.

#ifndef TCMALLOC_BASE_OUTPUT_H_
#define TCMALLOC_BASE_OUTPUT_H_

#include <string_view>

namespace tcmalloc {

// WriteAll and WriteLineWithin make their system calls directly, so that they are no points of
// cancellation, and raise neither SIGPIPE nor SIGXFSZ. They keep errno. They allocate nothing, take
// no lock and may be used in a signal handler.

// Writes all of `text` to `fd`, retrying interrupted and short writes. Waits as write does. Ignores
// failures, because nobody could be told.
void WriteAll(int fd, std::string_view text);

// Writes `line`, of less than 4096 bytes, to `fd` as a whole, or not at all if a reader does not
// make room for it within this many milliseconds. A write to a file may take longer. Returns false
// if there was no room, in a file perhaps for a part of it, or if the write failed.
bool WriteLineWithin(int fd, std::string_view line, int milliseconds);

}  // namespace tcmalloc

#endif  // TCMALLOC_BASE_OUTPUT_H_
