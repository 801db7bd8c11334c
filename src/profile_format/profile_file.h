// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A file that appears complete or not at all.

#ifndef TCMALLOC_PROFILE_FORMAT_PROFILE_FILE_H_
#define TCMALLOC_PROFILE_FORMAT_PROFILE_FILE_H_

#include <string_view>

#include "options/options.h"
#include "profile_format/byte_sink.h"

namespace tcmalloc {

// Writes to a file of mode 0600 beside the one that is wanted, which it becomes at the end. The
// wanted one must not exist, or be a regular file of the user's own: no link is followed, and no
// FIFO or device is written to. Nothing is written with raised privileges. Each failure prints one
// line. Allocates nothing. Keeps errno.
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
  // Gives the file its name. Returns false after any failure.
  bool Complete();

 private:
  std::string_view Obstacle() const;
  void MakeTemporaryName();
  void Fail(std::string_view what);

  const char* path_;
  char temporary_[kPathCapacity + 32];
  int saved_errno_;
  int fd_ = -1;
  bool failed_ = false;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_PROFILE_FORMAT_PROFILE_FILE_H_
