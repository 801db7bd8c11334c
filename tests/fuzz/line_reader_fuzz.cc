// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Files of any contents, read in pieces of any size into a buffer of any size.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "fakes/fake_file.h"
#include "fuzz/fuzz_input.h"
#include "fuzz/fuzz_target.h"
#include "system/line_reader.h"

using namespace tcmalloc;
using namespace tcmalloc::testing;

namespace {

// Takes the first line and its delimiter off `contents`.
std::string_view TakeLine(std::string_view* contents, char delimiter) {
  const size_t length = std::min(contents->find(delimiter), contents->size());
  const std::string_view line = contents->substr(0, length);
  contents->remove_prefix(std::min(length + 1, contents->size()));
  return line;
}

void CheckLines(LineReader& reader, std::string_view contents, size_t capacity, char delimiter) {
  std::string_view line;
  while (!contents.empty()) {
    const std::string_view expected = TakeLine(&contents, delimiter);
    TCMALLOC_CHECK(reader.Next(&line));
    TCMALLOC_CHECK(line == expected.substr(0, capacity));
    TCMALLOC_CHECK_EQ(reader.truncated(), expected.size() >= capacity);
  }
  TCMALLOC_CHECK(!reader.Next(&line));
}

}  // namespace

TCM_FUZZ_TARGET(line_reader_fuzz, MutateBytes)(const uint8_t* data, size_t size) {
  FuzzInput input(data, size);
  const size_t capacity = 1 + input.Take<uint8_t>() % 64;
  const char delimiter = input.Pick({'\n', '\0'});
  const bool interrupted = input.Pick({false, true});
  const size_t bytes_per_read = 1 + input.Take<uint8_t>() % 64;
  const bool fails = input.Pick({false, true});
  std::string_view contents = input.TakeRest();

  FakeFile file{std::string(contents)};
  file.set_most_bytes_per_read(bytes_per_read);
  file.set_interrupted(interrupted);
  if (fails) {
    contents = contents.substr(0, contents.size() / 2);
    file.set_most_bytes_per_read(1);
    file.set_bytes_before_error(contents.size());
  }
  // Of exactly this size, so that a byte beyond its end is noticed.
  std::vector<char> buffer(capacity);
  {
    LineReader reader(buffer.data(), capacity, delimiter);
    TCMALLOC_CHECK(reader.Open("/some/file"));
    CheckLines(reader, contents, capacity, delimiter);
  }
  TCMALLOC_CHECK_EQ(file.open_files(), 0);
  return 0;
}
