// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Collects what is written, and unpacks it by the system's gzip.

#ifndef TCMALLOC_TESTS_UNIT_PROFILE_FORMAT_STRING_SINK_H_
#define TCMALLOC_TESTS_UNIT_PROFILE_FORMAT_STRING_SINK_H_

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "profile_format/byte_sink.h"

namespace tcmalloc::testing {

class StringSink final : public ByteSink {
 public:
  void Write(std::string_view bytes) override { text_ += bytes; }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// Fails the test unless `packed` is a whole gzip file with the right checksum.
inline std::string Unpack(const std::string& packed) {
  std::string path = ::testing::TempDir() + "unpack.XXXXXX";
  const int fd = mkstemp(path.data());
  EXPECT_GE(fd, 0);
  close(fd);
  std::ofstream(path, std::ios::binary) << packed;
  FILE* pipe = popen(("gzip -dc < " + path).c_str(), "r");
  EXPECT_NE(pipe, nullptr);
  std::string unpacked;
  char buffer[4096];
  for (size_t n = 0; (n = fread(buffer, 1, sizeof(buffer), pipe)) > 0;) unpacked.append(buffer, n);
  EXPECT_EQ(pclose(pipe), 0);
  std::filesystem::remove(path);
  return unpacked;
}

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_UNIT_PROFILE_FORMAT_STRING_SINK_H_
