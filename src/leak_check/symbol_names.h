// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Names of functions, from the symbol tables of files.

#ifndef TCMALLOC_LEAK_CHECK_SYMBOL_NAMES_H_
#define TCMALLOC_LEAK_CHECK_SYMBOL_NAMES_H_

#include <cstddef>
#include <cstdint>
#include <span>
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
  // Tells that Find will be asked for an address. The next call of Find reads each table once for
  // all of them, instead of once for each. Does nothing if there is no room for it.
  void Want(uintptr_t address);
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
  struct Found {
    uintptr_t address = 0;
    SymbolName name;
  };
  static constexpr size_t kMostFound = 256;
  // An address whose function is looked for.
  struct Wanted {
    const File* file = nullptr;
    uintptr_t in_file = 0;  // the address in the file's own numbering
    SymbolName* name = nullptr;
  };
  class ElfFile;
  class WantedPieces;

  bool ok() const {
    return found_.data() != nullptr && wanted_.data() != nullptr && places_.data() != nullptr;
  }
  // Returns where the index of an address is, or where it goes.
  uint16_t& PlaceOf(uintptr_t address) const;
  // Finds the file. Returns false if it names no function.
  bool FindFile(uintptr_t address, SymbolName* name, Wanted* wanted);
  SymbolName Search(uintptr_t address);
  static void NameAll(std::span<Wanted> wanted);
  File* FileOf(std::string_view path);

  const Mappings& mappings_;
  Scratch<File> files_{kMostFiles};
  size_t file_count_ = 0;
  // Stacks have most of their frames in common. The last ones are next to each other, because most
  // reports have few.
  Scratch<Found> found_{kMostFound};
  size_t found_count_ = 0;
  Scratch<Wanted> wanted_{
      kMostFound};  // of those found, the ones whose functions are not known yet
  size_t wanted_count_ = 0;
  static constexpr size_t kPlaces = 2 * kMostFound;  // a power of two
  Scratch<uint16_t> places_{kPlaces};  // by address, one more than the index; 0 if there is none
};

}  // namespace tcmalloc

#endif  // TCMALLOC_LEAK_CHECK_SYMBOL_NAMES_H_
