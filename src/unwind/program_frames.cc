// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "unwind/program_frames.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/auxv.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "system/system_calls.h"

namespace tcmalloc {
namespace {

class ProgramFile {
 public:
  ProgramFile() : fd_(system_calls.open("/proc/self/exe", O_RDONLY | O_CLOEXEC, 0)) {}
  ~ProgramFile() {
    if (fd_ >= 0) system_calls.close(fd_);
  }
  ProgramFile(const ProgramFile&) = delete;
  ProgramFile& operator=(const ProgramFile&) = delete;

  bool Read(uint64_t offset, void* to, size_t bytes) const {
    return fd_ >= 0 && system_calls.pread(fd_, to, bytes, static_cast<off_t>(offset)) ==
                           static_cast<ssize_t>(bytes);
  }

 private:
  int fd_;
};

bool FindSection(const ProgramFile& file, const ElfW(Ehdr) & header, ElfW(Shdr) * section) {
  constexpr char kName[] = ".eh_frame";
  ElfW(Shdr) names;
  if (header.e_shentsize != sizeof(names)) return false;
  if (!file.Read(header.e_shoff + header.e_shstrndx * sizeof(names), &names, sizeof(names))) {
    return false;
  }
  for (size_t i = 0; i < header.e_shnum; ++i) {
    char name[sizeof(kName)];
    if (!file.Read(header.e_shoff + i * sizeof(*section), section, sizeof(*section))) return false;
    if (!file.Read(names.sh_offset + section->sh_name, name, sizeof(name))) continue;
    if (std::memcmp(name, kName, sizeof(kName)) == 0) return section->sh_addr != 0;
  }
  return false;
}

ProgramFrames ReadFrames() {
  const ProgramFile file;
  ElfW(Ehdr) header;
  ElfW(Shdr) section;
  const bool found = file.Read(0, &header, sizeof(header)) &&
                     std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
                     FindSection(file, header, &section);
  if (!found) return {};
  const uintptr_t begin = system_calls.getauxval(AT_ENTRY) - header.e_entry + section.sh_addr;
  return {.begin = begin, .end = begin + section.sh_size};
}

constinit std::atomic<uintptr_t> known_begin{0};
constinit std::atomic<uintptr_t> known_end{0};
constinit std::atomic<bool> is_known{false};

}  // namespace

// Threads that come at the same time read the same.
bool FindProgramFrames(ProgramFrames* frames) {
  // Acquire pairs with the release in FindProgramFrames: the two words are there.
  if (!is_known.load(std::memory_order_acquire)) {
    const int saved_errno = errno;
    const ProgramFrames read = ReadFrames();
    errno = saved_errno;
    known_begin.store(read.begin, std::memory_order_relaxed);
    known_end.store(read.end, std::memory_order_relaxed);
    // Release pairs with the acquire in FindProgramFrames.
    is_known.store(true, std::memory_order_release);
  }
  frames->begin = known_begin.load(std::memory_order_relaxed);
  frames->end = known_end.load(std::memory_order_relaxed);
  return frames->begin != 0;
}

}  // namespace tcmalloc
