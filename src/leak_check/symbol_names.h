// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Names of functions, from the symbol tables of files.

#ifndef TCMALLOC_LEAK_CHECK_SYMBOL_NAMES_H_
#define TCMALLOC_LEAK_CHECK_SYMBOL_NAMES_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "profile_format/mappings.h"
#include "profile_format/scratch.h"

namespace tcmalloc {

struct SymbolName {
  std::string_view function;  // as the linker knows it; empty if it is not known
  uintptr_t offset = 0;       // of the address in it
  std::string_view file;      // that the code is from; empty if it is from none
  uintptr_t file_offset = 0;  // of the address in it
};

// Finds functions in the mapped files of the process. Keeps the files mapped. For one thread; takes
// no lock, and memory from the system alone.
class SymbolNames {
 public:
  // `mappings` outlive the object.
  explicit SymbolNames(const Mappings& mappings) : mappings_(mappings) {}
  ~SymbolNames();
  SymbolNames(const SymbolNames&) = delete;
  SymbolNames& operator=(const SymbolNames&) = delete;

  // Names the function that an address lies in. The texts are valid as long as the object.
  SymbolName Find(uintptr_t address);
  // Returns the build id of a file that Find has named, in hexadecimal; empty if it has none. Valid
  // as long as the object.
  std::string_view BuildIdOf(std::string_view path);

 private:
  struct File {
    std::string_view path;
    const char* bytes = nullptr;  // null if it could not be mapped
    size_t size = 0;
    bool build_id_was_read = false;
    size_t build_id_length = 0;
    char build_id[2 * kMostBuildIdBytes] = {};
  };
  static constexpr size_t kMostFiles = 512;
  // A search reads the whole table of a file, and stacks have most of their frames in common.
  struct Found {
    uintptr_t address = 0;
    SymbolName name;
  };
  static constexpr size_t kFound = 256;  // a power of two

  SymbolName Search(uintptr_t address);
  File* FileOf(std::string_view path);

  const Mappings& mappings_;
  Scratch<File> files_{kMostFiles};
  size_t file_count_ = 0;
  Scratch<Found> found_{kFound};  // by address
};

// Writes the name of a function without its parameters, as a programmer knows it, to `text`, and
// returns its part of it: the qualified name in a mangled C++ name of the usual kinds. Other names
// stay as they are.
std::string_view ReadableName(std::string_view symbol, char* text, size_t capacity);

}  // namespace tcmalloc

#endif  // TCMALLOC_LEAK_CHECK_SYMBOL_NAMES_H_
