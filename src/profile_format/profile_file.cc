// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "profile_format/profile_file.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/message.h"
#include "system/auxv.h"
#include "system/system_calls.h"

namespace tcmalloc {
namespace {

// Returns the last part of a path, the name of the file.
const char* NameIn(const char* path) {
  const char* slash = std::strrchr(path, '/');
  return slash == nullptr ? path : slash + 1;
}

// Returns true for the user that the program was started as, and for the one that it is now,
// because servers that root starts become another user.
bool IsOfThisUser(uid_t owner) {
  return owner == system_calls.getauxval(AT_EUID) || owner == ::geteuid();
}

// The name of a file until it is complete. It names the thread, so that each of several writers has
// a file of its own, and leaves out the end of a name to which nothing can be added. Made anew
// where it is needed, because it would take most of the stack that writers use.
class TemporaryName {
 public:
  TemporaryName(const char* path, int attempt) {
    Message suffix;
    suffix << ".tmp." << int64_t{system_calls.gettid()};
    if (attempt > 0) suffix << "." << attempt;
    const size_t whole = std::strlen(path);
    const auto folder = static_cast<size_t>(NameIn(path) - path);
    const size_t longest = std::min<size_t>(folder + NAME_MAX, PATH_MAX - 1) - suffix.view().size();
    const size_t length = std::max(std::min(whole, longest), folder);
    std::memcpy(text_, path, length);
    std::memcpy(text_ + length, suffix.view().data(), suffix.view().size());
    text_[length + suffix.view().size()] = '\0';
  }

  const char* text() const { return text_; }

 private:
  char text_[kPathCapacity + 32];
};

}  // namespace

ProfileFile::ProfileFile(const char* path) : path_(path), saved_errno_(errno) {
  errno = 0;
  const std::string_view obstacle = Obstacle();
  obstacle.empty() ? Create() : Fail(obstacle);
}

ProfileFile::~ProfileFile() {
  if (fd_ >= 0) system_calls.close(fd_);
  if (unfinished_) system_calls.unlink(TemporaryName(path_, attempt_).text());
  errno = saved_errno_;
}

// Tries several temporary names, because a process that was killed leaves its file behind, and a
// later process may have the same number: the first process of a container always has the number 1.
void ProfileFile::Create() {
  constexpr int kMostAttempts = 100;
  for (; attempt_ < kMostAttempts; ++attempt_) {
    const TemporaryName name(path_, attempt_);
    errno = 0;
    fd_ = system_calls.open(name.text(),
                            O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, 0600);
    if (fd_ >= 0 || errno != EEXIST) break;
  }
  unfinished_ = fd_ >= 0;
  if (!unfinished_) Fail("cannot be created");
}

// Returns why the file may not be written; empty if it may.
std::string_view ProfileFile::Obstacle() const {
  if (IsSecureProcess()) return "not written with raised privileges";
  if (path_[0] == '\0') return "the path is empty";
  if (std::strlen(path_) >= kPathCapacity) return "the path is too long";
  if (std::strlen(NameIn(path_)) > NAME_MAX) return "the name is too long";
  struct stat information = {};
  const bool exists = system_calls.lstat(path_, &information) == 0;
  errno = 0;
  const bool own = S_ISREG(information.st_mode) && IsOfThisUser(information.st_uid);
  return exists && !own ? "exists, and is not a regular file of this user" : "";
}

void ProfileFile::Write(std::string_view bytes) {
  if (bytes.empty()) return;
  if (bytes.size() > buffer_.size() - buffered_) Flush();
  if (bytes.size() > buffer_.size()) return WriteOut(bytes);
  std::memcpy(buffer_.data() + buffered_, bytes.data(), bytes.size());
  buffered_ += bytes.size();
}

void ProfileFile::Flush() {
  WriteOut({buffer_.data(), buffered_});
  buffered_ = 0;
}

void ProfileFile::WriteOut(std::string_view bytes) {
  while (ok() && !bytes.empty()) {
    errno = 0;
    const ssize_t n = system_calls.write(fd_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return Fail("cannot be written");
    bytes.remove_prefix(static_cast<size_t>(n));
  }
}

// Some file systems say only on close that bytes were not written.
bool ProfileFile::Complete() {
  Flush();
  if (!ok()) return false;
  errno = 0;
  if (system_calls.close(std::exchange(fd_, -1)) != 0) {
    Fail("cannot be written");
  } else if (system_calls.rename(TemporaryName(path_, attempt_).text(), path_) != 0) {
    Fail("cannot be given its name");
  } else {
    unfinished_ = false;
  }
  return !failed_;
}

void ProfileFile::Fail(std::string_view what) {
  if (failed_) return;
  failed_ = true;
  write_signals_.NoteFailure();
  Message message;
  message << "profile ";
  message.AppendQuoted(path_);
  message << ": " << what;
  if (errno != 0) message << " (errno " << errno << ")";
  Warn(message);
}

}  // namespace tcmalloc
