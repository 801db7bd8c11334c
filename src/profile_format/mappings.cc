// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "profile_format/mappings.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/auxv.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "system/auxv.h"
#include "system/maps_line.h"
#include "system/own_maps.h"
#include "system/system_calls.h"

namespace tcmalloc {
namespace {

// The headers and the notes are at the beginning of files that linkers make, mostly in the first
// page.
constexpr size_t kFirstHeadBytes = 4096;
constexpr size_t kHeadBytes = 16 << 10;

// Returns at most `count` characters from `from` on, which is at most the size. That of the C++
// library would throw otherwise, and nothing here may need that library.
std::string_view Part(std::string_view text, size_t from, size_t count) {
  return {text.data() + from, std::min(count, text.size() - from)};
}

// Reads on from a file until `head` has `wanted` bytes or the file ends. Returns how many it has.
size_t ReadUpTo(int fd, size_t wanted, size_t used, char* head) {
  while (used < wanted) {
    const ssize_t n = system_calls.read(fd, head + used, wanted - used);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    used += static_cast<size_t>(n);
  }
  return used;
}

// Copies a structure out of the head of a file. Returns false if it is not wholly there.
template <typename T>
bool CopyOut(std::string_view head, uint64_t offset, T* to) {
  if (offset > head.size() || head.size() - offset < sizeof(T)) return false;
  std::memcpy(to, head.data() + offset, sizeof(T));
  return true;
}

size_t FormatHex(std::string_view bytes, char* text) {
  constexpr char kDigits[] = "0123456789abcdef";
  for (const char byte : bytes) {
    *text++ = kDigits[static_cast<unsigned char>(byte) >> 4];
    *text++ = kDigits[static_cast<unsigned char>(byte) & 15];
  }
  return 2 * bytes.size();
}

// Returns the build id among notes, or nothing.
std::string_view FindBuildId(std::string_view notes) {
  ElfW(Nhdr) note;
  for (uint64_t offset = 0; CopyOut(notes, offset, &note);) {
    const uint64_t name = offset + sizeof(note);
    const uint64_t id = name + (uint64_t{note.n_namesz} + 3) / 4 * 4;
    const uint64_t next = id + (uint64_t{note.n_descsz} + 3) / 4 * 4;
    if (id + note.n_descsz > notes.size()) break;
    const bool gnu = note.n_namesz == 4 && std::memcmp(notes.data() + name, "GNU", 4) == 0;
    if (gnu && note.n_type == NT_GNU_BUILD_ID) {
      return Part(notes, id, std::min<size_t>(note.n_descsz, kMostBuildIdBytes));
    }
    offset = next;
  }
  return {};
}

// Writes the build id of the ELF file that begins with `head` to `text`. Returns the number of
// digits.
size_t FormatBuildId(std::string_view head, char* text) {
  ElfW(Ehdr) file;
  if (!CopyOut(head, 0, &file) || std::memcmp(file.e_ident, ELFMAG, SELFMAG) != 0) return 0;
  for (uint64_t i = 0; i < file.e_phnum; ++i) {
    ElfW(Phdr) segment;
    if (!CopyOut(head, file.e_phoff + i * sizeof(segment), &segment)) return 0;
    if (segment.p_type != PT_NOTE || segment.p_offset > head.size()) continue;
    const std::string_view id = FindBuildId(Part(head, segment.p_offset, segment.p_filesz));
    if (!id.empty()) return FormatHex(id, text);
  }
  return 0;
}

// Of the file that the kernel maps into every process, without a path. It is never unmapped.
constexpr std::string_view kVdsoName = "[vdso]";

std::string_view VdsoHead() {
  const uintptr_t image = system_calls.getauxval(AT_SYSINFO_EHDR);
  if (image == 0) return {};
  return {reinterpret_cast<const char*>(image), KernelPageSize()};
}

// Looks for the build id in more of a file, of which `first` has the beginning.
size_t ReadBuildIdFurther(int fd, const char (&first)[kFirstHeadBytes], char* text) {
  const Scratch<char> head(kHeadBytes);
  if (head.data() == nullptr) return 0;
  std::memcpy(head.data(), first, sizeof(first));
  const size_t used = ReadUpTo(fd, kHeadBytes, sizeof(first), head.data());
  return FormatBuildId({head.data(), used}, text);
}

}  // namespace

std::optional<Mapping> ParseMapping(std::string_view line) {
  const std::optional<MapsLine> parsed = ParseMapsLine(line);
  if (!parsed || parsed->permissions[2] != 'x' || parsed->name.empty()) return std::nullopt;
  return Mapping{parsed->begin, parsed->end, parsed->offset, parsed->name};
}

size_t ReadBuildId(const char* path, char* text) {
  if (std::string_view(path) == kVdsoName) return FormatBuildId(VdsoHead(), text);
  if (path[0] != '/') return 0;
  const int fd = system_calls.open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0);
  if (fd < 0) return 0;
  char first[kFirstHeadBytes];
  const size_t used = ReadUpTo(fd, sizeof(first), 0, first);
  size_t digits = FormatBuildId({first, used}, text);
  if (digits == 0 && used == sizeof(first)) digits = ReadBuildIdFurther(fd, first, text);
  system_calls.close(fd);
  return digits;
}

void CopyOwnMaps(ByteSink& sink) {
  const int fd = system_calls.open(OwnMapsFile(), O_RDONLY | O_CLOEXEC, 0);
  if (fd < 0) return;
  char text[2048];
  ssize_t n = 0;
  while ((n = system_calls.read(fd, text, sizeof(text))) > 0 || (n < 0 && errno == EINTR)) {
    if (n > 0) sink.Write({text, static_cast<size_t>(n)});
  }
  system_calls.close(fd);
}

Mappings::Mappings(const MapsText& text) {
  if (entries_.data() == nullptr || paths_.data() == nullptr) return;
  text.ForEachLine([this](std::string_view line) {
    if (const std::optional<Mapping> mapping = ParseMapping(line)) Add(*mapping);
  });
}

Mappings::Mappings()
    : Mappings([] {
        MapsText text;
        return text.Read() ? std::move(text) : MapsText();
      }()) {}

void Mappings::Add(const Mapping& mapping) {
  if (count_ == kMostMappings || paths_used_ + mapping.path.size() > kPathBytes) return;
  std::memcpy(paths_.data() + paths_used_, mapping.path.data(), mapping.path.size());
  entries_[count_++] = {mapping.start, mapping.limit, mapping.offset,
                        static_cast<uint32_t>(paths_used_),
                        static_cast<uint32_t>(mapping.path.size())};
  paths_used_ += mapping.path.size();
}

size_t Mappings::Find(uintptr_t address) const {
  const Entry* begin = entries_.data();
  const Entry* end = begin + count_;
  const Entry* entry = std::upper_bound(
      begin, end, address,
      [](uintptr_t wanted, const Entry& candidate) { return wanted < candidate.limit; });
  return entry != end && entry->start <= address ? static_cast<size_t>(entry - begin) : count_;
}

}  // namespace tcmalloc
