// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Reads a file of the kernel piece by piece, without allocating.

#ifndef TCMALLOC_SYSTEM_LINE_READER_H_
#define TCMALLOC_SYSTEM_LINE_READER_H_

#include <cstddef>
#include <string_view>

namespace tcmalloc {

// Splits a file at a delimiter, in a buffer of the caller's. Continues interrupted and short reads.
// Cuts a line that does not fit into the buffer with its delimiter, and skips the rest of it, so
// that the following lines are still found. Not thread safe. May change errno.
class LineReader {
 public:
  constexpr LineReader(char* buffer, size_t capacity, char delimiter)
      : buffer_(buffer), capacity_(capacity), delimiter_(delimiter) {}
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;
  ~LineReader() { Close(); }

  [[nodiscard]] bool Open(const char* path);
  // Opens a file that a user named, if it is a regular one. Others may have no end, or wait.
  [[nodiscard]] bool OpenRegular(const char* path);
  void Close();

  // Reads the next line without its delimiter, valid until the next call. Returns false at the end
  // of the file and after an error.
  [[nodiscard]] bool Next(std::string_view* line);
  // Returns true if the line that Next returned last was cut.
  bool truncated() const { return truncated_; }
  // Returns true if a failure to open or read the file says nothing about the file: the process or
  // the system had no descriptor or no memory left, or another thread closed it.
  bool interfered() const { return interfered_; }

 private:
  bool OpenWith(const char* path, int flags);
  bool Fill();
  bool FindDelimiter(size_t* length);
  bool SkipRestOfLine();
  void NoteFailure(int error);

  char* buffer_;
  size_t capacity_;
  char delimiter_;
  bool truncated_ = false;
  bool interfered_ = false;
  int fd_ = -1;
  // [begin_, end_) of the buffer was read and not yet returned.
  size_t begin_ = 0;
  size_t end_ = 0;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_SYSTEM_LINE_READER_H_
