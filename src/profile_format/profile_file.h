// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A file that appears complete or not at all.

#ifndef TCMALLOC_PROFILE_FORMAT_PROFILE_FILE_H_
#define TCMALLOC_PROFILE_FORMAT_PROFILE_FILE_H_

#include <signal.h>

#include <cstddef>
#include <string_view>

#include "base/hidden_write_signals.h"
#include "options/options.h"
#include "profile_format/byte_sink.h"
#include "profile_format/scratch.h"

namespace tcmalloc {

// Writes to a file of mode 0600 beside the one that is wanted, which it becomes at the end. The
// wanted one must not exist, or be a regular file of the user's own: no link is followed, and no
// FIFO or device is written to. Nothing is written with raised privileges. Each failure prints one
// line. Allocates nothing from the heap. Keeps errno.
//
// Hides SIGXFSZ from the program as long as the object lives. Used by one thread.
class ProfileFile final : public ByteSink {
 public:
  // Begins a file; ok() tells if that succeeded. `path` outlives the object.
  explicit ProfileFile(const char* path);
  // Removes the unfinished file, unless it was completed.
  ~ProfileFile();
  ProfileFile(const ProfileFile&) = delete;
  ProfileFile& operator=(const ProfileFile&) = delete;

  bool ok() const { return fd_ >= 0 && !failed_; }
  void Write(std::string_view bytes) override;
  // Gives the file up and says why, unless it failed before.
  void Fail(std::string_view what);
  // Gives the file its name. Returns false after any failure.
  bool Complete();

 private:
  static constexpr size_t kBufferBytes = size_t{64} << 10;

  std::string_view Obstacle() const;
  void Create();
  void WriteOut(std::string_view bytes);
  void Flush();

  const char* path_;
  int attempt_ = 0;  // that made the file, of several names
  int saved_errno_;
  HiddenWriteSignals write_signals_;
  int fd_ = -1;
  bool unfinished_ = false;  // there is a file of the temporary name
  bool failed_ = false;
  // Texts come word by word. Without memory each piece is written by itself.
  Scratch<char> buffer_{kBufferBytes};
  size_t buffered_ = 0;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_PROFILE_FORMAT_PROFILE_FILE_H_
