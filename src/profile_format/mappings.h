// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The files that the process has mapped to run code of them.

#ifndef TCMALLOC_PROFILE_FORMAT_MAPPINGS_H_
#define TCMALLOC_PROFILE_FORMAT_MAPPINGS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "profile_format/byte_sink.h"
#include "profile_format/maps_text.h"
#include "profile_format/scratch.h"

namespace tcmalloc {

inline constexpr size_t kMostBuildIdBytes = 64;

struct Mapping {
  uintptr_t start = 0;
  uintptr_t limit = 0;
  uint64_t offset = 0;
  std::string_view path;
};

// Returns the mapping that a line of /proc/PID/maps describes if code of a file can run there.
std::optional<Mapping> ParseMapping(std::string_view line);

// Writes the build id of the ELF file at `path` as hexadecimal digits to `text`, which has room for
// 2 * kMostBuildIdBytes. Returns their number, 0 if there is none. Reads the file, not the memory,
// which another thread may unmap, but for [vdso], which is there for good. Any other path that is
// not absolute names no file.
size_t ReadBuildId(const char* path, char* text);

// Writes the kernel's list of this process's mappings, as it is. Writes nothing if it cannot be
// read.
void CopyOwnMaps(ByteSink& sink);

// A copy of all mappings from which code can run, in the order of addresses.
class Mappings {
 public:
  // Leaves out what does not fit.
  Mappings();
  explicit Mappings(const MapsText& text);

  size_t size() const { return count_; }
  Mapping operator[](size_t i) const {
    const Entry& entry = entries_[i];
    return {entry.start, entry.limit, entry.offset, {paths_.data() + entry.path, entry.path_bytes}};
  }
  // Returns the index of the mapping with an address, or size().
  size_t Find(uintptr_t address) const;

 private:
  static constexpr size_t kMostMappings = 4096;
  static constexpr size_t kPathBytes = size_t{512} << 10;

  struct Entry {
    uintptr_t start;
    uintptr_t limit;
    uint64_t offset;
    uint32_t path;
    uint32_t path_bytes;
  };

  void Add(const Mapping& mapping);

  Scratch<Entry> entries_{kMostMappings};
  Scratch<char> paths_{kPathBytes};
  size_t count_ = 0;
  size_t paths_used_ = 0;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_PROFILE_FORMAT_MAPPINGS_H_
