// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "system/vdso.h"

#include <elf.h>

#include <cstddef>
#include <cstring>

namespace tcmalloc {
namespace {

template <typename T>
const T* At(uintptr_t address) {
  return reinterpret_cast<const T*>(address);
}

// The tables by which functions of an image are found.
struct Tables {
  uintptr_t bias = 0;  // of addresses in the image
  const Elf64_Sym* symbols = nullptr;
  const char* names = nullptr;
  const uint32_t* hash = nullptr;      // DT_HASH
  const uint32_t* gnu_hash = nullptr;  // DT_GNU_HASH: newer kernels have only this one

  bool complete() const {
    return symbols != nullptr && names != nullptr && (hash != nullptr || gnu_hash != nullptr);
  }
};

void ReadDynamicSection(const Elf64_Dyn* entry, Tables* tables) {
  for (; entry->d_tag != DT_NULL; ++entry) {
    const uintptr_t address = tables->bias + entry->d_un.d_ptr;
    switch (entry->d_tag) {
      case DT_SYMTAB:
        tables->symbols = At<Elf64_Sym>(address);
        break;
      case DT_STRTAB:
        tables->names = At<char>(address);
        break;
      case DT_HASH:
        tables->hash = At<uint32_t>(address);
        break;
      case DT_GNU_HASH:
        tables->gnu_hash = At<uint32_t>(address);
        break;
      default:
        break;
    }
  }
}

// Returns incomplete tables if the image is malformed.
Tables ReadTables(uintptr_t image) {
  Tables tables;
  const auto* header = At<Elf64_Ehdr>(image);
  if (std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return tables;
  if (header->e_ident[EI_CLASS] != ELFCLASS64) return tables;
  const auto* segments = At<Elf64_Phdr>(image + header->e_phoff);
  const Elf64_Phdr* load = nullptr;
  const Elf64_Phdr* dynamic = nullptr;
  for (size_t i = 0; i < header->e_phnum; ++i) {
    if (segments[i].p_type == PT_LOAD && load == nullptr) load = &segments[i];
    if (segments[i].p_type == PT_DYNAMIC) dynamic = &segments[i];
  }
  if (load == nullptr || dynamic == nullptr) return tables;
  tables.bias = image + load->p_offset - load->p_vaddr;
  ReadDynamicSection(At<Elf64_Dyn>(tables.bias + dynamic->p_vaddr), &tables);
  return tables;
}

bool IsFunction(const Tables& tables, uint32_t symbol, const char* name) {
  const Elf64_Sym& entry = tables.symbols[symbol];
  return ELF64_ST_TYPE(entry.st_info) == STT_FUNC && entry.st_shndx != SHN_UNDEF &&
         std::strcmp(tables.names + entry.st_name, name) == 0;
}

uint32_t GnuHash(const char* name) {
  uint32_t hash = 5381;
  for (; *name != 0; ++name) hash = hash * 33 + static_cast<unsigned char>(*name);
  return hash;
}

// Finds a function in a table of this form: the number of buckets, the first symbol in a bucket,
// the number of words of the filter, and its shift; the filter; the buckets; and for each symbol
// its hash, whose lowest bit marks the end of the bucket. Returns 0, which is no function, if there
// is none.
uint32_t FindByGnuHash(const Tables& tables, const char* name) {
  const uint32_t* table = tables.gnu_hash;
  const uint32_t bucket_count = table[0];
  const uint32_t first = table[1];
  const uint32_t* buckets = table + 4 + size_t{table[2]} * (sizeof(Elf64_Xword) / sizeof(*table));
  const uint32_t* hashes = buckets + bucket_count;
  if (bucket_count == 0) return 0;
  const uint32_t hash = GnuHash(name);
  uint32_t symbol = buckets[hash % bucket_count];
  if (symbol < first) return 0;
  for (;; ++symbol) {
    const uint32_t other = hashes[symbol - first];
    if ((other | 1) == (hash | 1) && IsFunction(tables, symbol, name)) return symbol;
    if ((other & 1) != 0) return 0;
  }
}

// The other form of table has a chain for every symbol, so its second word is the number of
// symbols.
uint32_t FindAmongAll(const Tables& tables, const char* name) {
  const uint32_t count = tables.hash[1];
  for (uint32_t symbol = 1; symbol < count; ++symbol) {
    if (IsFunction(tables, symbol, name)) return symbol;
  }
  return 0;
}

}  // namespace

uintptr_t FindVdsoFunction(uintptr_t image, const char* name) {
  const Tables tables = ReadTables(image);
  if (!tables.complete()) return 0;
  const uint32_t symbol =
      tables.gnu_hash != nullptr ? FindByGnuHash(tables, name) : FindAmongAll(tables, name);
  return symbol != 0 ? tables.bias + tables.symbols[symbol].st_value : 0;
}

}  // namespace tcmalloc
