// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "profile_format/symbolizer.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "options/options.h"
#include "profile_format/readable_name.h"
#include "system/system_calls.h"

namespace tcmalloc {
namespace {

using Section = ElfW(Shdr);
using Symbol = ElfW(Sym);

// The most characters of a name in a message: those of templates may take thousands.
constexpr size_t kLongestName = 160;
constexpr uint64_t kMostSections = 1 << 16;

bool IsFunction(const Symbol& symbol) {
  // ELF32_ST_TYPE and ELF64_ST_TYPE are alike.
  const auto type = ELF64_ST_TYPE(symbol.st_info);
  return (type == STT_FUNC || type == STT_GNU_IFUNC) && symbol.st_shndx != SHN_UNDEF;
}

}  // namespace

ElfFile::ElfFile(const char* path) {
  const int fd = system_calls.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
  if (fd < 0) return;
  const long size = ::syscall(SYS_lseek, fd, 0L, SEEK_END);
  if (size > static_cast<long>(sizeof(ElfW(Ehdr)))) {
    void* memory =
        system_calls.mmap(nullptr, static_cast<size_t>(size), PROT_READ, MAP_PRIVATE, fd, 0);
    if (memory != MAP_FAILED) {
      bytes_ = static_cast<const char*>(memory);
      size_ = static_cast<size_t>(size);
    }
  }
  system_calls.close(fd);
  const bool is_elf = bytes_ != nullptr && std::memcmp(bytes_, ELFMAG, SELFMAG) == 0 &&
                      bytes_[EI_CLASS] == (sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32);
  if (!is_elf && bytes_ != nullptr) {
    system_calls.munmap(const_cast<char*>(bytes_), size_);
    bytes_ = nullptr;
  }
}

ElfFile::~ElfFile() {
  if (bytes_ != nullptr) system_calls.munmap(const_cast<char*>(bytes_), size_);
}

uint64_t ElfFile::AddressAt(uint64_t offset) const {
  if (!ok()) return kNoAddress;
  const auto* header = At<ElfW(Ehdr)>(0);
  const auto* segments = At<ElfW(Phdr)>(header->e_phoff, header->e_phnum);
  if (segments == nullptr) return kNoAddress;
  for (uint64_t i = 0; i < header->e_phnum; ++i) {
    const auto& segment = segments[i];
    if (segment.p_type == PT_LOAD && offset - segment.p_offset < segment.p_filesz) {
      return segment.p_vaddr + (offset - segment.p_offset);
    }
  }
  return kNoAddress;
}

// Finds the nearest function at or below `address` that holds it, in the tables of one type.
ElfFile::Function ElfFile::FindIn(uint32_t section_type, uint64_t address) const {
  Function best;
  uint64_t least = UINT64_MAX;
  const auto* header = At<ElfW(Ehdr)>(0);
  const uint64_t count = std::min<uint64_t>(header->e_shnum, kMostSections);
  const auto* sections = At<Section>(header->e_shoff, count);
  for (uint64_t i = 0; sections != nullptr && i < count; ++i) {
    const Section& table = sections[i];
    if (table.sh_type != section_type || table.sh_link >= count) continue;
    const Section& strings = sections[table.sh_link];
    const uint64_t symbol_count = table.sh_size / sizeof(Symbol);
    const auto* symbols = At<Symbol>(table.sh_offset, symbol_count);
    const char* text = At<char>(strings.sh_offset, strings.sh_size);
    if (symbols == nullptr || text == nullptr || strings.sh_size == 0) continue;
    if (text[strings.sh_size - 1] != '\0') continue;
    for (uint64_t s = 0; s < symbol_count; ++s) {
      const Symbol& symbol = symbols[s];
      const uint64_t distance = address - symbol.st_value;
      const uint64_t size = std::max<uint64_t>(symbol.st_size, 1);
      if (!IsFunction(symbol) || distance >= size || distance >= least) continue;
      if (symbol.st_name >= strings.sh_size) continue;
      least = distance;
      best = {text + symbol.st_name, distance};
    }
  }
  return best;
}

ElfFile::Function ElfFile::FindFunction(uint64_t address) const {
  if (!ok() || address == kNoAddress) return {};
  const Function function = FindIn(SHT_SYMTAB, address);
  return function.name != nullptr ? function : FindIn(SHT_DYNSYM, address);
}

void Symbolizer::Describe(uintptr_t address, Message& message) const {
  // The return address may already belong to the next function.
  const uintptr_t call = address - 1;
  const size_t index = mappings_.Find(call);
  if (index == mappings_.size()) return;
  const Mapping mapping = mappings_[index];
  char path[kPathCapacity];
  if (mapping.path.size() >= sizeof(path)) return;
  std::memcpy(path, mapping.path.data(), mapping.path.size());
  path[mapping.path.size()] = '\0';
  const uint64_t offset = call - mapping.start + mapping.offset;
  if (names_ && path[0] == '/') {
    const ElfFile file(path);
    const ElfFile::Function function = file.FindFunction(file.AddressAt(offset));
    if (function.name != nullptr) {
      ReadableNameText room;
      message << " " << BeginningOfName(function.name, room, kLongestName) << "+"
              << function.distance + 1 << " (" << path << "+"
              << reinterpret_cast<const void*>(offset + 1) << ")";
      return;
    }
  }
  message << " " << path << "+" << reinterpret_cast<const void*>(offset + 1);
  char id[2 * kMostBuildIdBytes];
  const size_t length = ReadBuildId(path, id);
  if (length > 0) message << " (build id " << std::string_view(id, length) << ")";
}

}  // namespace tcmalloc
