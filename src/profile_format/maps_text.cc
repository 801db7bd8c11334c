// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "profile_format/maps_text.h"

#include <fcntl.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "system/own_maps.h"
#include "system/system_calls.h"

namespace tcmalloc {

bool MapsText::MakeRoom() {
  if (size_ < bytes_.size()) return true;
  Scratch<char> larger(std::max(2 * bytes_.size(), kFirstBytes));
  if (larger.data() == nullptr) return false;
  if (size_ != 0) std::memcpy(larger.data(), bytes_.data(), size_);
  bytes_ = std::move(larger);
  return true;
}

bool MapsText::Read() {
  size_ = 0;
  const int fd = system_calls.open(OwnMapsFile(), O_RDONLY | O_CLOEXEC, 0);
  if (fd < 0) return false;
  bool complete = false;
  while (!complete && MakeRoom()) {
    const ssize_t n = system_calls.read(fd, bytes_.data() + size_, bytes_.size() - size_);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) break;
    size_ += static_cast<size_t>(n);
    complete = n == 0;
  }
  system_calls.close(fd);
  if (!complete) size_ = 0;
  return size_ != 0;
}

}  // namespace tcmalloc
