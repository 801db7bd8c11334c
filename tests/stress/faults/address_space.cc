// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "stress/faults/address_space.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "stress/threads/workload.h"

namespace tcmalloc::testing {

size_t AddressSpaceBytes() {
  std::array<char, 100> text{};
  const int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  PROGRAM_CHECK(fd >= 0 && read(fd, text.data(), text.size() - 1) > 0);
  close(fd);
  return strtoull(text.data(), nullptr, 10) * static_cast<size_t>(getpagesize());
}

}  // namespace tcmalloc::testing
