// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "leak_check/symbol_names.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>

#include "base/random.h"
#include "system/system_calls.h"

namespace tcmalloc {
namespace {

// With its zero byte.
constexpr size_t kLongestPath = 4096;

}  // namespace

// The pieces of a file in which wanted addresses lie. Tells quickly that most functions have none
// of these.
class SymbolNames::WantedPieces {
 public:
  explicit WantedPieces(std::span<const Wanted> wanted) {
    for (const Wanted& address : wanted) {
      const uintptr_t piece = address.in_file / kPieceBytes;
      bits_[piece / 64 % kWords] |= uint64_t{1} << (piece % 64);
    }
  }

  bool MayHaveAny(uintptr_t begin, uint64_t bytes) const {
    if (bytes >= kPieceBytes) return true;
    return Has(begin / kPieceBytes) || Has((begin + bytes) / kPieceBytes);
  }

 private:
  static constexpr uintptr_t kPieceBytes = 1024;
  static constexpr size_t kWords = 64;

  bool Has(uintptr_t piece) const { return (bits_[piece / 64 % kWords] >> (piece % 64) & 1) != 0; }

  uint64_t bits_[kWords] = {};  // pieces that are a multiple of all bits apart share one
};

// The bytes of an ELF file. Nothing is read beyond them, whatever the file says.
class SymbolNames::ElfFile {
 public:
  explicit ElfFile(const File& file) : bytes_(file.bytes), size_(file.size) {
    valid_ = bytes_ != nullptr && Copy(0, &header_) &&
             std::memcmp(header_.e_ident, ELFMAG, SELFMAG) == 0;
  }

  // Returns the address that a byte of the file has in the file's own numbering, or 0.
  uintptr_t AddressOf(uint64_t offset) const {
    ElfW(Phdr) segment;
    for (uint64_t i = 0; valid_ && i < header_.e_phnum; ++i) {
      if (!Copy(header_.e_phoff + i * sizeof(segment), &segment)) return 0;
      if (segment.p_type != PT_LOAD || offset < segment.p_offset) continue;
      if (offset - segment.p_offset < segment.p_filesz) {
        return segment.p_vaddr + (offset - segment.p_offset);
      }
    }
    return 0;
  }

  // Finds the functions that addresses lie in, which are sorted.
  void NameFunctions(std::span<const Wanted> wanted) const {
    size_t left = wanted.size();
    for (const uint32_t type : {uint32_t{SHT_SYMTAB}, uint32_t{SHT_DYNSYM}}) {
      ElfW(Shdr) table;
      for (uint64_t i = 0; valid_ && left > 0 && i < header_.e_shnum; ++i) {
        if (!Copy(header_.e_shoff + i * sizeof(table), &table)) break;
        if (table.sh_type == type) left -= NameBy(table, wanted, left);
      }
    }
  }

 private:
  template <typename T>
  bool Copy(uint64_t offset, T* to) const {
    if (offset > size_ || size_ - offset < sizeof(T)) return false;
    std::memcpy(to, bytes_ + offset, sizeof(T));
    return true;
  }

  // Names what has no name yet, `left` of the addresses. Returns the number of those that have one
  // now.
  size_t NameBy(const ElfW(Shdr) & table, std::span<const Wanted> wanted, size_t left) const {
    ElfW(Shdr) strings;
    if (!Copy(header_.e_shoff + uint64_t{table.sh_link} * sizeof(strings), &strings)) return 0;
    if (table.sh_offset > size_) return 0;
    const WantedPieces pieces(wanted);
    const char* at = bytes_ + table.sh_offset;
    const char* const end = at + std::min<uint64_t>(table.sh_size, size_ - table.sh_offset);
    size_t named = 0;
    while (named < left && static_cast<size_t>(end - at) >= sizeof(ElfW(Sym))) {
      ElfW(Sym) symbol;
      std::memcpy(&symbol, at, sizeof(symbol));
      at += sizeof(symbol);
      if (!pieces.MayHaveAny(symbol.st_value, symbol.st_size)) continue;
      const uint32_t type = symbol.st_info & 0xf;
      const bool function = type == STT_FUNC || type == STT_GNU_IFUNC;
      if (function && symbol.st_shndx != SHN_UNDEF) named += NameIn(symbol, strings, wanted);
    }
    return named;
  }

  size_t NameIn(const ElfW(Sym) & symbol, const ElfW(Shdr) & strings,
                std::span<const Wanted> wanted) const {
    size_t named = 0;
    auto at = std::ranges::lower_bound(wanted, symbol.st_value, {}, &Wanted::in_file);
    for (; at != wanted.end() && at->in_file - symbol.st_value < symbol.st_size; ++at) {
      if (!at->name->function.empty()) continue;
      at->name->function = TextAt(strings.sh_offset + symbol.st_name);
      at->name->offset = at->in_file - symbol.st_value;
      named += at->name->function.empty() ? 0 : 1;
    }
    return named;
  }

  std::string_view TextAt(uint64_t offset) const {
    if (offset >= size_) return {};
    return {bytes_ + offset, ::strnlen(bytes_ + offset, size_ - offset)};
  }

  const char* bytes_;
  size_t size_;
  ElfW(Ehdr) header_ = {};
  bool valid_ = false;
};

SymbolNames::~SymbolNames() {
  for (size_t i = 0; i < file_count_; ++i) {
    if (files_[i].bytes != nullptr) {
      system_calls.munmap(const_cast<char*>(files_[i].bytes), files_[i].size);
    }
  }
}

SymbolNames::File* SymbolNames::FileOf(std::string_view path) {
  for (size_t i = 0; i < file_count_; ++i) {
    if (files_[i].path == path) return &files_[i];
  }
  if (file_count_ >= files_.size() || path.size() >= kLongestPath || path.front() != '/')
    return nullptr;
  File& file = files_[file_count_++];
  file.path = path;
  char name[kLongestPath] = {};
  std::memcpy(name, path.data(), path.size());
  const int fd = system_calls.open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0);
  if (fd < 0) return &file;
  struct stat information;
  if (system_calls.lstat(name, &information) == 0 && S_ISREG(information.st_mode)) {
    const auto size = static_cast<size_t>(information.st_size);
    void* bytes = system_calls.mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes != MAP_FAILED) {
      file.bytes = static_cast<const char*>(bytes);
      file.size = size;
    }
  }
  system_calls.close(fd);
  return &file;
}

SymbolName SymbolNames::Find(uintptr_t address) {
  if (!ok()) return Search(address);
  if (PlaceOf(address) == 0 && found_count_ == kMostFound) {
    std::fill_n(places_.data(), kPlaces, uint16_t{0});
    found_count_ = 0;
    wanted_count_ = 0;
  }
  Want(address);
  NameAll({wanted_.data(), wanted_count_});
  wanted_count_ = 0;
  return found_[PlaceOf(address) - 1].name;
}

void SymbolNames::Want(uintptr_t address) {
  if (!ok() || found_count_ == kMostFound) return;
  uint16_t& place = PlaceOf(address);
  if (place != 0) return;
  Found& found = found_[found_count_++];
  place = static_cast<uint16_t>(found_count_);
  found = {.address = address, .name = {}};
  if (FindFile(address, &found.name, &wanted_[wanted_count_])) ++wanted_count_;
}

// Without memory for what was found.
SymbolName SymbolNames::Search(uintptr_t address) {
  SymbolName name;
  Wanted wanted;
  if (FindFile(address, &name, &wanted)) NameAll({&wanted, 1});
  return name;
}

uint16_t& SymbolNames::PlaceOf(uintptr_t address) const {
  size_t place = NextRandom(address) % kPlaces;
  while (places_[place] != 0 && found_[places_[place] - 1].address != address) {
    place = (place + 1) % kPlaces;
  }
  return places_[place];
}

bool SymbolNames::FindFile(uintptr_t address, SymbolName* name, Wanted* wanted) {
  const size_t i = mappings_.Find(address);
  if (i == mappings_.size() || files_.data() == nullptr) return false;
  const Mapping mapping = mappings_[i];
  name->file = mapping.path;
  name->file_offset = address - mapping.start + mapping.offset;
  const File* file = mapping.path.empty() ? nullptr : FileOf(mapping.path);
  if (file == nullptr) return false;
  *wanted = {file, ElfFile(*file).AddressOf(name->file_offset), name};
  return wanted->in_file != 0;
}

void SymbolNames::NameAll(std::span<Wanted> wanted) {
  std::ranges::sort(wanted, [](const Wanted& a, const Wanted& b) {
    return a.file != b.file ? a.file < b.file : a.in_file < b.in_file;
  });
  for (auto begin = wanted.begin(); begin != wanted.end();) {
    const auto end = std::find_if(begin, wanted.end(),
                                  [=](const Wanted& other) { return other.file != begin->file; });
    ElfFile(*begin->file).NameFunctions({begin, end});
    begin = end;
  }
}

std::string_view SymbolNames::BuildIdOf(std::string_view path) {
  File* const file = files_.data() != nullptr ? FileOf(path) : nullptr;
  if (file == nullptr) return {};
  if (!file->build_id_was_read) {
    char name[kLongestPath] = {};
    std::memcpy(name, path.data(), path.size());
    file->build_id_length = ReadBuildId(name, file->build_id);
    file->build_id_was_read = true;
  }
  return {file->build_id, file->build_id_length};
}

}  // namespace tcmalloc
