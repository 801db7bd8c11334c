// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "leak_check/memory_map.h"

#include <fcntl.h>

#include <algorithm>
#include <cstring>

#include "system/line_reader.h"
#include "system/system_calls.h"
#include "unwind/readable_memory.h"

namespace tcmalloc {
namespace {

constexpr size_t kLongestLine = 4096 + 128;

// Takes the characters up to `end` from the front of *text, and `end` as well.
std::string_view TakeUntil(char end, std::string_view* text) {
  size_t length = 0;
  while (length < text->size() && (*text)[length] != end) ++length;
  const std::string_view taken(text->data(), length);
  text->remove_prefix(std::min(length + 1, text->size()));
  return taken;
}

std::optional<uintptr_t> ParseHex(std::string_view digits) {
  if (digits.empty() || digits.size() > 16) return std::nullopt;
  uintptr_t value = 0;
  for (const char c : digits) {
    const bool decimal = c >= '0' && c <= '9';
    if (!decimal && (c < 'a' || c > 'f')) return std::nullopt;
    value = value << 4 | static_cast<uintptr_t>(decimal ? c - '0' : c - 'a' + 10);
  }
  return value;
}

bool NamesLinker(std::string_view path) {
  std::string_view name = path;
  while (!name.empty()) {
    const std::string_view part = TakeUntil('/', &name);
    if (name.empty()) name = part;
    if (name.data() == part.data()) break;
  }
  return name.starts_with("ld") && name.find(".so") != std::string_view::npos;
}

}  // namespace

std::optional<MappedRange> ParseMappedRange(std::string_view line) {
  const std::optional<uintptr_t> begin = ParseHex(TakeUntil('-', &line));
  const std::optional<uintptr_t> end = ParseHex(TakeUntil(' ', &line));
  const std::string_view permissions = TakeUntil(' ', &line);
  if (!begin || !end || permissions.size() < 4) return std::nullopt;
  for (int skipped = 0; skipped < 3; ++skipped) TakeUntil(' ', &line);
  while (!line.empty() && line.front() == ' ') line.remove_prefix(1);
  MappedRange entry;
  entry.range = {*begin, *end};
  entry.readable = permissions[0] == 'r';
  entry.writable = permissions[1] == 'w';
  entry.shared = permissions[3] == 's';
  entry.of_file = !line.empty() && line.front() == '/';
  entry.of_first_stack = line == "[stack]";
  entry.of_linker = entry.of_file && NamesLinker(line);
  return entry;
}

bool MemoryMap::Read() {
  const Scratch<char> buffer(kLongestLine);
  entries_ = Scratch<MappedRange>(kMostEntries);
  count_ = 0;
  last_ = 0;
  if (buffer.data() == nullptr || entries_.data() == nullptr) return false;
  LineReader reader(buffer.data(), kLongestLine, '\n');
  if (!reader.Open("/proc/self/maps")) return false;
  for (std::string_view line; count_ < kMostEntries && reader.Next(&line);) {
    if (const std::optional<MappedRange> entry = ParseMappedRange(line)) {
      entries_[count_++] = *entry;
    }
  }
  return count_ > 0;
}

size_t MemoryMap::IndexAt(uintptr_t address) const {
  if (last_ < count_ && address < entries_[last_].range.end &&
      (last_ == 0 || address >= entries_[last_ - 1].range.end)) {
    return last_;
  }
  const MappedRange* begin = entries_.data();
  const MappedRange* found = std::upper_bound(
      begin, begin + count_, address,
      [](uintptr_t wanted, const MappedRange& entry) { return wanted < entry.range.end; });
  last_ = static_cast<size_t>(found - begin);
  return last_;
}

const MappedRange* MemoryMap::Find(uintptr_t address) const {
  const size_t i = IndexAt(address);
  return i < count_ && entries_[i].range.Contains(address) ? &entries_[i] : nullptr;
}

MemoryMap::Prober::Prober(const MemoryMap& /*map*/, const MappedRange& entry)
    : of_file_(entry.of_file) {
  if (!of_file_) fd_ = system_calls.open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC, 0);
}

MemoryMap::Prober::~Prober() {
  if (fd_ >= 0) system_calls.close(fd_);
}

bool MemoryMap::Prober::IsThere(uintptr_t page) {
  constexpr uint64_t kPresentOrSwapped = uint64_t{3} << 62;
  if (of_file_) return IsReadable(page * kPageBytes);
  if (fd_ < 0) return true;
  if (page < first_ || page >= first_ + known_) {
    const ssize_t got = system_calls.pread(fd_, flags_, sizeof(flags_),
                                           static_cast<off_t>(page * sizeof(flags_[0])));
    if (got < static_cast<ssize_t>(sizeof(flags_[0]))) return true;
    first_ = page;
    known_ = static_cast<size_t>(got) / sizeof(flags_[0]);
  }
  return (flags_[page - first_] & kPresentOrSwapped) != 0;
}

bool MemoryMap::Prober::Next(const Range& part, Range* piece) {
  uintptr_t page = piece->end / kPageBytes;
  if (piece->end != part.begin && piece->end % kPageBytes != 0) return false;
  const uintptr_t end = (part.end + kPageBytes - 1) / kPageBytes;
  while (page < end && !IsThere(page)) ++page;
  if (page >= end) return false;
  const uintptr_t first = page;
  while (page < end && IsThere(page)) ++page;
  *piece = Range{first * kPageBytes, page * kPageBytes}.Within(part);
  return true;
}

}  // namespace tcmalloc
