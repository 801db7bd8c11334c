// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Reads /proc/PID/maps and /proc/PID/smaps.

#ifndef TCMALLOC_SYSTEM_PROC_MAPS_H_
#define TCMALLOC_SYSTEM_PROC_MAPS_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "system/line_reader.h"

namespace tcmalloc {

struct ProcMapping {
  uintptr_t start = 0;
  uintptr_t end = 0;
  bool readable = false;
  bool writable = false;
  bool executable = false;
  bool shared = false;
  uint64_t offset = 0;
  uint64_t inode = 0;
  std::string_view name;  // a path, "[heap]", "[anon:NAME]", or empty
};

// One line of either file.
struct ProcMapsLine {
  enum class Kind {
    kMapping,  // mapping is set
    kSize,     // of smaps: field is set, and bytes
    kOther,    // anything else, for example VmFlags
  };
  Kind kind = Kind::kOther;
  ProcMapping mapping;
  std::string_view field;  // for example "Rss"
  uint64_t bytes = 0;
};

// Accepts any text. Views in the result point into `text`.
ProcMapsLine ParseProcMapsLine(std::string_view text);

// Lists the lines of one file. Takes no lock and allocates nothing. Not thread safe. May change
// errno.
class ProcMapsReader {
 public:
  ProcMapsReader() = default;

  [[nodiscard]] bool Open(const char* path) { return lines_.Open(path); }
  // The next line, valid until the next call.
  [[nodiscard]] bool Next(ProcMapsLine* line);

 private:
  // Twice the longest path; of a longer line the end of the name is cut.
  static constexpr size_t kLongestLine = size_t{8} << 10;

  char buffer_[kLongestLine];
  LineReader lines_{buffer_, sizeof(buffer_), '\n'};
};

}  // namespace tcmalloc

#endif  // TCMALLOC_SYSTEM_PROC_MAPS_H_
