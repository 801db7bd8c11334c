// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "leak_check/memory_map.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "system/maps_line.h"
#include "system/system_calls.h"
#include "unwind/readable_memory.h"

namespace tcmalloc {
namespace {

// In the kernel's table of pages.
constexpr uint64_t kPresentOrSwapped = uint64_t{3} << 62;

// Reads entries of the kernel's table of pages. Returns their number, 0 if there are none.
size_t ReadPages(int table, uintptr_t first, size_t wanted, uint64_t* entries) {
  const ssize_t got = system_calls.pread(table, entries, wanted * sizeof(entries[0]),
                                         static_cast<off_t>(first * sizeof(entries[0])));
  return got > 0 ? static_cast<size_t>(got) / sizeof(entries[0]) : 0;
}

// Sets the flags of pages that are in the kernel's memory, whether this process has them in its
// table or not. Returns the number of pages, 0 if the kernel does not tell.
size_t ReadPagesInCore(uintptr_t first, size_t wanted, uint64_t* flags) {
  constexpr size_t kMost = 512;
  constexpr size_t kBytes = 4096;
  uint8_t in_core[kMost];
  const size_t count = std::min(wanted, kMost);
  if (::syscall(SYS_mincore, first * kBytes, count * kBytes, in_core) != 0) return 0;
  std::transform(in_core, in_core + count, flags,
                 [](uint8_t page) { return (page & 1) != 0 ? kPresentOrSwapped : 0; });
  return count;
}

// Pages of shared memory that are swapped out are not in core.
bool MayBeSwappedOut() {
  struct sysinfo info = {};
  return ::syscall(SYS_sysinfo, &info) != 0 || info.freeswap != info.totalswap;
}

}  // namespace

std::optional<MappedRange> ParseMappedRange(std::string_view line) {
  const std::optional<MapsLine> parsed = ParseMapsLine(line);
  if (!parsed) return std::nullopt;
  MappedRange entry;
  entry.range = {parsed->begin, parsed->end};
  entry.readable = parsed->permissions[0] == 'r';
  entry.writable = parsed->permissions[1] == 'w';
  entry.shared = parsed->permissions[3] == 's';
  entry.of_file = parsed->name.starts_with('/');
  entry.of_first_stack = parsed->name == "[stack]";
  return entry;
}

bool MemoryMap::Read(const MapsText& text) {
  entries_ = Scratch<MappedRange>(kMostEntries);
  count_ = 0;
  last_ = 0;
  if (entries_.data() == nullptr) return false;
  text.ForEachLine([this](std::string_view line) {
    const std::optional<MappedRange> entry = ParseMappedRange(line);
    if (entry && count_ < kMostEntries) entries_[count_++] = *entry;
  });
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

// An emulator may have the process at other addresses than the kernel's table does.
int MemoryMap::PageTable() const {
  if (opened_page_table_) return page_table_;
  opened_page_table_ = true;
  const int fd = system_calls.open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC, 0);
  if (fd < 0) return -1;
  uint64_t own_page = 0;
  if (ReadPages(fd, reinterpret_cast<uintptr_t>(&own_page) / kPageBytes, 1, &own_page) == 1 &&
      (own_page & kPresentOrSwapped) != 0) {
    page_table_ = fd;
  } else {
    system_calls.close(fd);
  }
  return page_table_;
}

MemoryMap::~MemoryMap() {
  if (page_table_ >= 0) system_calls.close(page_table_);
}

MemoryMap::Prober::Prober(const MemoryMap& map, const MappedRange& entry)
    : entry_(entry), table_(entry.shared ? -1 : map.PageTable()) {
  if (!entry.shared || MayBeSwappedOut()) tells_core_ = false;
}

bool MemoryMap::Prober::IsThere(uintptr_t page, uintptr_t end) {
  if (!Knows(page)) {
    first_ = page;
    known_ = ReadFlags(std::min<size_t>(end - page, kPagesAtOnce));
  }
  if (Knows(page)) {
    if ((flags_[page - first_] & kPresentOrSwapped) == 0) return false;
    if (table_ >= 0) return true;
  }
  return !entry_.of_file || IsReadable(page * kPageBytes);
}

size_t MemoryMap::Prober::ReadFlags(size_t wanted) {
  if (table_ >= 0) return ReadPages(table_, first_, wanted, flags_);
  if (tells_core_ == false) return 0;
  const size_t known = ReadPagesInCore(first_, wanted, flags_);
  const bool absent = std::find(flags_, flags_ + known, kPresentOrSwapped) == flags_ + known;
  if (absent && !tells_core_) tells_core_ = TellsAbsentPages();
  return tells_core_ == false ? 0 : known;
}

// Of a mapping with the kernel's large pages mincore tells only what this process has in its table,
// where a new process has nothing. Such a mapping begins and ends with one, and a look at a byte
// brings in all of it.
bool MemoryMap::Prober::TellsAbsentPages() {
  constexpr size_t kLargePageBytes = kPagesAtOnce * kPageBytes;
  if (entry_.range.begin % kLargePageBytes != 0 || entry_.range.bytes() % kLargePageBytes != 0) {
    return true;
  }
  if (!IsReadable(first_ * kPageBytes)) return false;
  const uintptr_t large_page = first_ / kPagesAtOnce * kPagesAtOnce;
  uint64_t flags[kPagesAtOnce];
  const size_t known = ReadPagesInCore(large_page, kPagesAtOnce, flags);
  return std::find(flags, flags + known, uint64_t{0}) != flags + known;
}

bool MemoryMap::Prober::Next(const Range& part, Range* piece) {
  uintptr_t page = piece->end / kPageBytes;
  if (piece->end != part.begin && piece->end % kPageBytes != 0) return false;
  const uintptr_t end = (part.end + kPageBytes - 1) / kPageBytes;
  while (page < end && !IsThere(page, end)) ++page;
  if (page >= end) return false;
  const uintptr_t first = page++;
  while (page < end && IsThere(page, end)) ++page;
  *piece = Range{first * kPageBytes, page * kPageBytes}.Within(part);
  return true;
}

}  // namespace tcmalloc
