// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "fakes/fake_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace tcmalloc::testing {
namespace {

constexpr int kDescriptor = 1000;
FakeFile* current = nullptr;

}  // namespace

FakeFile::FakeFile(std::string contents) : saved_(system_calls), contents_(std::move(contents)) {
  TCMALLOC_CHECK(current == nullptr);
  current = this;
  system_calls.open = Open;
  system_calls.read = Read;
  system_calls.close = Close;
}

FakeFile::~FakeFile() {
  system_calls = saved_;
  current = nullptr;
}

bool FakeFile::Interrupt() {
  if (!interrupted_) return false;
  interrupt_next_ = !interrupt_next_;
  if (!interrupt_next_) errno = EINTR;
  return !interrupt_next_;
}

int FakeFile::Open(const char* path, int, mode_t) {
  if (current->Interrupt()) return -1;
  current->path_ = path;
  current->position_ = 0;
  ++current->open_files_;
  return kDescriptor;
}

ssize_t FakeFile::Read(int fd, void* buffer, size_t bytes) {
  TCMALLOC_CHECK_EQ(fd, kDescriptor);
  if (current->Interrupt()) return -1;
  if (current->position_ >= current->bytes_before_error_) {
    errno = EIO;
    return -1;
  }
  const size_t count = std::min(
      {bytes, current->most_bytes_per_read_, current->contents_.size() - current->position_});
  std::memcpy(buffer, current->contents_.data() + current->position_, count);
  current->position_ += count;
  return static_cast<ssize_t>(count);
}

int FakeFile::Close(int fd) {
  TCMALLOC_CHECK_EQ(fd, kDescriptor);
  --current->open_files_;
  return 0;
}

}  // namespace tcmalloc::testing
