// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "system/line_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "system/system_calls.h"

namespace tcmalloc {

bool LineReader::Open(const char* path) { return OpenWith(path, 0); }

bool LineReader::OpenRegular(const char* path) {
  // Does not wait for a writer of a pipe.
  if (!OpenWith(path, O_NONBLOCK)) return false;
  struct stat information = {};
  if (::syscall(SYS_fstat, fd_, &information) == 0 && S_ISREG(information.st_mode)) return true;
  Close();
  return false;
}

bool LineReader::OpenWith(const char* path, int flags) {
  Close();
  do {
    fd_ = system_calls.open(path, O_RDONLY | O_CLOEXEC | flags, 0);
  } while (fd_ < 0 && errno == EINTR);
  if (fd_ < 0) NoteFailure(errno);
  return fd_ >= 0;
}

void LineReader::NoteFailure(int error) {
  interfered_ = error == EMFILE || error == ENFILE || error == ENOMEM || error == EBADF;
}

void LineReader::Close() {
  if (fd_ >= 0) system_calls.close(fd_);
  fd_ = -1;
  begin_ = 0;
  end_ = 0;
  truncated_ = false;
  interfered_ = false;
}

bool LineReader::Next(std::string_view* line) {
  if (truncated_ && !SkipRestOfLine()) return false;
  size_t length = 0;
  while (!FindDelimiter(&length)) {
    if (Fill()) continue;
    // The file ends without a delimiter, or the line fills the buffer.
    *line = {buffer_ + begin_, end_ - begin_};
    begin_ = end_;
    truncated_ = line->size() == capacity_;
    return !line->empty();
  }
  *line = {buffer_ + begin_, length};
  begin_ += length + 1;
  return true;
}

// Returns false if the file ends before the line does.
bool LineReader::SkipRestOfLine() {
  truncated_ = false;
  size_t length = 0;
  while (!FindDelimiter(&length)) {
    begin_ = end_;
    if (!Fill()) return false;
  }
  begin_ += length + 1;
  return true;
}

bool LineReader::FindDelimiter(size_t* length) {
  if (begin_ == end_) return false;
  const void* found = std::memchr(buffer_ + begin_, delimiter_, end_ - begin_);
  if (found == nullptr) return false;
  *length = static_cast<size_t>(static_cast<const char*>(found) - (buffer_ + begin_));
  return true;
}

// Reads more data behind the present data. Returns false on an error, or if there is no room or no
// more data.
bool LineReader::Fill() {
  if (begin_ != 0) {
    std::memmove(buffer_, buffer_ + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (end_ == capacity_ || fd_ < 0) return false;
  ssize_t count = 0;
  do {
    count = system_calls.read(fd_, buffer_ + end_, capacity_ - end_);
  } while (count < 0 && errno == EINTR);
  if (count < 0) NoteFailure(errno);
  if (count <= 0) return false;
  end_ += static_cast<size_t>(count);
  return true;
}

}  // namespace tcmalloc
