// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Symbol tables that no linker makes.

#include "leak_check/symbol_names.h"

#include <elf.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

namespace tcmalloc {
namespace {

// The whole of a file with one segment, which begins at address 0, a symbol table and its texts.
struct Image {
  static constexpr size_t kSymbols = 4;

  Image() {
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_phoff = offsetof(Image, segment);
    header.e_phnum = 1;
    header.e_shoff = offsetof(Image, sections);
    header.e_shnum = 2;
    segment.p_type = PT_LOAD;
    segment.p_filesz = sizeof(Image);
    sections[0].sh_type = SHT_SYMTAB;
    sections[0].sh_offset = offsetof(Image, symbols);
    sections[0].sh_size = sizeof(symbols);
    sections[0].sh_link = 1;
    sections[1].sh_offset = offsetof(Image, texts);
  }

  // Makes symbol `i` a function with the name 'a' + i.
  void AddFunction(size_t i, uintptr_t address, uint64_t bytes) {
    texts[2 * i] = static_cast<char>('a' + i);
    symbols[i].st_name = static_cast<uint32_t>(2 * i);
    symbols[i].st_info = STT_FUNC;
    symbols[i].st_shndx = 1;
    symbols[i].st_value = address;
    symbols[i].st_size = bytes;
  }

  ElfW(Ehdr) header = {};
  ElfW(Phdr) segment = {};
  ElfW(Shdr) sections[2] = {};
  char texts[2 * kSymbols] = {};
  ElfW(Sym) symbols[kSymbols] = {};
};

class SymbolNamesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fd_ = ::mkstemp(path_.data());
    ASSERT_GE(fd_, 0);
  }
  void TearDown() override {
    if (memory_ != MAP_FAILED) ::munmap(memory_, sizeof(Image));
    ::close(fd_);
    ::unlink(path_.c_str());
  }

  // Maps a file with the first `bytes` of the image. Returns the function at `address` in it.
  std::string NameIn(const Image& image, uintptr_t address, size_t bytes = sizeof(Image)) {
    if (memory_ != MAP_FAILED) ::munmap(memory_, sizeof(Image));
    EXPECT_EQ(::ftruncate(fd_, 0), 0);
    EXPECT_EQ(::pwrite(fd_, &image, bytes, 0), static_cast<ssize_t>(bytes));
    memory_ = ::mmap(nullptr, sizeof(Image), PROT_READ | PROT_EXEC, MAP_PRIVATE, fd_, 0);
    EXPECT_NE(memory_, MAP_FAILED);
    const Mappings mappings;
    SymbolNames names(mappings);
    const SymbolName found = names.Find(reinterpret_cast<uintptr_t>(memory_) + address);
    EXPECT_EQ(found.file, path_);
    return std::string(found.function) + "+" + std::to_string(found.offset);
  }

 private:
  std::string path_ = ::testing::TempDir() + "symbol_names_XXXXXX";
  int fd_ = -1;
  void* memory_ = MAP_FAILED;
};

TEST_F(SymbolNamesTest, FunctionsHaveTheirBytesAndNoOther) {
  Image image;
  image.AddFunction(0, 0x10, 8);
  image.AddFunction(1, 0x18, 8);
  EXPECT_EQ(NameIn(image, 0x10), "a+0");
  EXPECT_EQ(NameIn(image, 0x17), "a+7");
  EXPECT_EQ(NameIn(image, 0x18), "b+0");
  EXPECT_EQ(NameIn(image, 0x20), "+0");
}

TEST_F(SymbolNamesTest, FunctionsDoNotReachBeyondTheLastAddress) {
  Image image;
  image.AddFunction(0, 0x40, UINT64_MAX);
  image.AddFunction(1, 0x10, 8);
  EXPECT_EQ(NameIn(image, 0x12), "b+2");
  EXPECT_EQ(NameIn(image, 0x42), "a+2");
}

TEST_F(SymbolNamesTest, TablesEndWithTheirFile) {
  Image image;
  for (size_t i = 0; i < Image::kSymbols; ++i) image.AddFunction(i, 0x10 + 8 * i, 8);
  image.sections[0].sh_size = UINT64_MAX;
  const size_t last = offsetof(Image, symbols) + (Image::kSymbols - 1) * sizeof(ElfW(Sym));
  EXPECT_EQ(NameIn(image, 0x28), "d+0");
  EXPECT_EQ(NameIn(image, 0x28, sizeof(Image) - 1), "+0");
  EXPECT_EQ(NameIn(image, 0x20, sizeof(Image) - 1), "c+0");
  EXPECT_EQ(NameIn(image, 0x20, last), "c+0");
  for (const uint64_t offset : {uint64_t{sizeof(Image)}, uint64_t{sizeof(Image)} + 1, UINT64_MAX}) {
    image.sections[0].sh_offset = offset;
    EXPECT_EQ(NameIn(image, 0x10), "+0");
  }
}

TEST_F(SymbolNamesTest, TextsAndSectionsMayLieNowhere) {
  Image image;
  image.AddFunction(0, 0x10, 8);
  image.symbols[0].st_name = UINT32_MAX;
  EXPECT_EQ(NameIn(image, 0x10), "+0");
  image.symbols[0].st_name = 0;
  image.sections[0].sh_link = UINT32_MAX;
  EXPECT_EQ(NameIn(image, 0x10), "+0");
  image.header.e_shoff = UINT64_MAX - 8;
  EXPECT_EQ(NameIn(image, 0x10), "+0");
  image.header.e_phoff = UINT64_MAX - 8;
  EXPECT_EQ(NameIn(image, 0x10), "+0");
}

}  // namespace
}  // namespace tcmalloc
