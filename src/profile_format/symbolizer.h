// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Names of functions for addresses of code, found without the loader's lock and without malloc.

#ifndef TCMALLOC_PROFILE_FORMAT_SYMBOLIZER_H_
#define TCMALLOC_PROFILE_FORMAT_SYMBOLIZER_H_

#include <cstddef>
#include <cstdint>

#include "base/message.h"
#include "profile_format/mappings.h"

namespace tcmalloc {

// An ELF file, mapped to be read.
class ElfFile {
 public:
  ElfFile() = default;
  // Maps the file at `path`, if it is an ELF file of this machine's word size.
  explicit ElfFile(const char* path);
  ~ElfFile();
  ElfFile(const ElfFile&) = delete;
  ElfFile& operator=(const ElfFile&) = delete;

  bool ok() const { return bytes_ != nullptr; }

  // The address that the linker gave to the byte at `offset` of the file, which is loaded.
  // kNoAddress if no segment loads it.
  static constexpr uint64_t kNoAddress = UINT64_MAX;
  uint64_t AddressAt(uint64_t offset) const;

  // The function around an address: its name, null if none is known, and the address's distance
  // from its start.
  struct Function {
    const char* name = nullptr;
    uint64_t distance = 0;
  };
  Function FindFunction(uint64_t address) const;

 private:
  template <typename T>
  const T* At(uint64_t offset, uint64_t count = 1) const {
    const bool fits =
        offset % alignof(T) == 0 && offset <= size_ && count <= (size_ - offset) / sizeof(T);
    return fits ? reinterpret_cast<const T*>(bytes_ + offset) : nullptr;
  }
  Function FindIn(uint32_t section_type, uint64_t address) const;

  const char* bytes_ = nullptr;
  size_t size_ = 0;
};

// Describes addresses of the running process. Reads /proc/self/maps when it is made, and the files
// that are mapped later.
class Symbolizer {
 public:
  // With `names` false, describes where an address lies, but not the function.
  explicit Symbolizer(bool names) : names_(names) {}
  Symbolizer(const Symbolizer&) = delete;
  Symbolizer& operator=(const Symbolizer&) = delete;

  // Appends the function and the file that a call before `address` lies in, or the file with its
  // build id, as far as they are known.
  void Describe(uintptr_t address, Message& message) const;

 private:
  Mappings mappings_;
  bool names_;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_PROFILE_FORMAT_SYMBOLIZER_H_
