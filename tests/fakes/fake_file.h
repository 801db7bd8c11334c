// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// One file that the code under test reads instead of the real ones.

#ifndef TCMALLOC_TESTS_FAKES_FAKE_FILE_H_
#define TCMALLOC_TESTS_FAKES_FAKE_FILE_H_

#include <cstddef>
#include <string>

#include "system/system_calls.h"

namespace tcmalloc::testing {

// While it lives every open succeeds and reads this file; at most one at a time. Not thread safe.
class FakeFile {
 public:
  explicit FakeFile(std::string contents);
  ~FakeFile();
  FakeFile(const FakeFile&) = delete;
  FakeFile& operator=(const FakeFile&) = delete;

  // Each read returns at most so many bytes.
  void set_most_bytes_per_read(size_t bytes) { most_bytes_per_read_ = bytes; }
  // Before each call that succeeds one fails with EINTR.
  void set_interrupted(bool interrupted) { interrupted_ = interrupted; }
  // Reads fail once so many bytes were read.
  void set_bytes_before_error(size_t bytes) { bytes_before_error_ = bytes; }

  const std::string& path() const { return path_; }  // that was opened last
  int open_files() const { return open_files_; }

 private:
  static int Open(const char* path, int flags, mode_t mode);
  static ssize_t Read(int fd, void* buffer, size_t bytes);
  static int Close(int fd);

  bool Interrupt();

  SystemCalls saved_;
  std::string contents_;
  std::string path_;
  size_t position_ = 0;
  size_t most_bytes_per_read_ = SIZE_MAX;
  size_t bytes_before_error_ = SIZE_MAX;
  bool interrupted_ = false;
  bool interrupt_next_ = true;
  int open_files_ = 0;
};

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_FAKES_FAKE_FILE_H_
