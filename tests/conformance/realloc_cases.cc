// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "conformance/cases.h"
#include "conformance/malloc_api.h"
#include "conformance/resident.h"

namespace tcmalloc::testing {
namespace {

using Size = std::size_t;

constexpr Size kReallocatedSizes[] = {1,     7,     8,      15,     16,     33,
                                      100,   1024,  4096,   5000,   8192,   32768,
                                      40000, 65537, 262144, 262145, 300000, 4 << 20};

struct Resizer {
  std::string name;
  std::function<void*(void* block, Size size)> call;
};

std::vector<Resizer> Resizers() {
  std::vector<Resizer> list;
  for (const char* name : {"realloc", "tc_realloc", "__libc_realloc"}) {
    if (void* (*f)(void*, Size) = Symbol(name)) list.push_back({name, f});
  }
  if (Api().reallocarray != nullptr) {
    list.push_back(
        {"reallocarray(p,1,n)", [](void* p, Size n) { return Api().reallocarray(p, 1, n); }});
    list.push_back(
        {"reallocarray(p,n,1)", [](void* p, Size n) { return Api().reallocarray(p, n, 1); }});
  }
  return list;
}

// Other bytes at each multiple of a power of two, so that contents in the wrong place show.
constexpr Size kPeriod = 251 * 256;
const std::array<char, kPeriod> kMarks = [] {
  std::array<char, kPeriod> marks;
  for (Size i = 0; i < kPeriod; ++i) marks[i] = static_cast<char>(i * 31 + i / 251);
  return marks;
}();

void Fill(void* block, Size size) {
  for (Size i = 0; i < size; i += kPeriod) {
    std::memcpy(static_cast<char*>(block) + i, kMarks.data(), std::min(kPeriod, size - i));
  }
}

bool Kept(const void* block, Size size) {
  for (Size i = 0; i < size; i += kPeriod) {
    const char* part = static_cast<const char*>(block) + i;
    if (std::memcmp(part, kMarks.data(), std::min(kPeriod, size - i)) != 0) return false;
  }
  return true;
}

void AddFailure(Suite& suite, const Resizer& resizer) {
  for (const Size size : kReallocatedSizes) {
    suite.Add("realloc/" + resizer.name + "/failure keeps " + std::to_string(size) + " bytes",
              [resizer, size](Case& result) {
                void* const block = Api().malloc(size);
                Fill(block, size);
                for (const Size absurd : {Size{SIZE_MAX}, Size{SIZE_MAX} - 4095,
                                          Size{PTRDIFF_MAX} + 1, Size{1} << 62}) {
                  errno = 0;
                  result.Equal<const void*>("block", nullptr, resizer.call(block, absurd));
                  result.Equal("errno", ENOMEM, errno);
                }
                result.True("contents kept", Kept(block, size));
                Api().free(block);
              });
  }
}

void AddContents(Suite& suite, const Resizer& resizer) {
  for (const Size from : kReallocatedSizes) {
    suite.Add("realloc/" + resizer.name + "/contents from " + std::to_string(from) + " bytes",
              [resizer, from](Case& result) {
                for (const Size to : kReallocatedSizes) {
                  void* const block = Api().malloc(from);
                  Fill(block, from);
                  void* const resized = resizer.call(block, to);
                  if (!result.True("a block", resized != nullptr)) return;
                  result.True("contents to " + std::to_string(to),
                              Kept(resized, std::min(from, to)));
                  Fill(resized, to);
                  Api().free(resized);
                }
              });
  }
}

void AddToZero(Suite& suite, const Resizer& resizer) {
  suite.Add("realloc/" + resizer.name + "/to 0 frees and returns NULL", [resizer](Case& result) {
    // 16 times the bound below, were the blocks not freed.
    constexpr Size kSize = 64 * 1024;
    constexpr Size kBound = Size{32} << 20;
    const Size before = ResidentBytes();
    for (Size done = 0; done < 16 * kBound; done += kSize) {
      void* const block = Api().malloc(kSize);
      std::memset(block, 1, kSize);
      if (!result.Equal<const void*>("result", nullptr, resizer.call(block, 0))) return;
    }
    const Size grown = ResidentBytes() - std::min(before, ResidentBytes());
    result.Check(grown < kBound, "resident growth", "below " + std::to_string(kBound), grown);
  });
  suite.Add("realloc/" + resizer.name + "/NULL to 0 gives a block", [resizer](Case& result) {
    void* const block = resizer.call(nullptr, 0);
    result.True("a block", block != nullptr);
    Api().free(block);
  });
}

void AddAligned(Suite& suite, const Resizer& resizer) {
  suite.Add("realloc/" + resizer.name + "/of aligned blocks", [resizer](Case& result) {
    for (Size alignment = 8; alignment <= 65536; alignment *= 2) {
      for (const Size from : kReallocatedSizes) {
        void* const block = Api().memalign(alignment, from);
        Fill(block, from);
        void* const resized = resizer.call(block, from * 2 + 1);
        result.True("contents at alignment " + std::to_string(alignment), Kept(resized, from));
        Api().free(resized);
      }
    }
  });
}

// Step by step, as a growing and shrinking string does.
void AddSteps(Suite& suite, const Resizer& resizer) {
  suite.Add("realloc/" + resizer.name + "/every size up and down", [resizer](Case& result) {
    constexpr Size kLargest = 3000;
    void* block = Api().malloc(1);
    Fill(block, 1);
    for (Size size = 2; size <= kLargest; ++size) {
      block = resizer.call(block, size);
      if (!result.True("contents growing to " + std::to_string(size), Kept(block, size - 1))) break;
      Fill(block, size);
    }
    for (Size size = kLargest; size >= 1; --size) {
      block = resizer.call(block, size);
      if (!result.True("contents shrinking to " + std::to_string(size), Kept(block, size))) break;
    }
    Api().free(block);
  });
}

// Blocks of many pages, of which a part goes and comes again.
void AddLongBlocks(Suite& suite, const Resizer& resizer) {
  suite.Add("realloc/" + resizer.name + "/long blocks shrink and grow", [resizer](Case& result) {
    constexpr Size kLongest = Size{16} << 20;
    void* block = Api().malloc(kLongest);
    Fill(block, kLongest);
    for (const Size size : {kLongest / 2, kLongest / 3, kLongest, kLongest / 8, kLongest / 5,
                            kLongest / 60, Size{270'000}, Size{1000}, kLongest / 2}) {
      void* const resized = resizer.call(block, size);
      if (!result.True("a block", resized != nullptr)) break;
      block = resized;
      result.True("contents at " + std::to_string(size), Kept(block, std::min<Size>(size, 1000)));
      result.True("usable size", Api().malloc_usable_size(block) >= size);
      Fill(block, size);
      // Memory that was cut off does not read as zero by itself.
      auto* const zeroed = static_cast<char*>(Api().calloc(1, kLongest / 4));
      result.True("zeroed",
                  zeroed[0] == 0 && std::memcmp(zeroed, zeroed + 1, kLongest / 4 - 1) == 0);
      std::memset(zeroed, 1, kLongest / 4);
      Api().free(zeroed);
    }
    Api().free(block);
  });
}

void AddNothrow(Suite& suite) {
  suite.Add("realloc/new that fails without throwing says why", [](Case& result) {
    for (const Size absurd : {Size{SIZE_MAX}, Size{PTRDIFF_MAX}}) {
      errno = 0;
      result.Equal<const void*>("block", nullptr, ::operator new(absurd, std::nothrow));
      result.Equal("errno", ENOMEM, errno);
    }
  });
}

void AddReallocarrayOverflow(Suite& suite) {
  suite.Add("realloc/reallocarray/overflow keeps the block", [](Case& result) {
    void* const block = Api().malloc(1000);
    Fill(block, 1000);
    for (const Size count : {Size{SIZE_MAX}, Size{1} << 63, SIZE_MAX / 8 + 1}) {
      errno = 0;
      result.Equal<const void*>("block", nullptr, Api().reallocarray(block, count, 8));
      result.Equal("errno", ENOMEM, errno);
    }
    result.True("contents kept", Kept(block, 1000));
    Api().free(block);
  });
  for (const bool count_is_zero : {true, false}) {
    suite.Add(std::string("realloc/reallocarray/a zero ") + (count_is_zero ? "count" : "size") +
                  " frees and returns NULL",
              [count_is_zero](Case& result) {
                void* const block = Api().malloc(100);
                result.Equal<const void*>(
                    "result", nullptr,
                    Api().reallocarray(block, count_is_zero ? 0 : 10, count_is_zero ? 10 : 0));
              });
  }
}

}  // namespace

void AddReallocCases(Suite& suite) {
  for (const Resizer& resizer : Resizers()) {
    AddFailure(suite, resizer);
    AddContents(suite, resizer);
    AddToZero(suite, resizer);
    AddAligned(suite, resizer);
    AddSteps(suite, resizer);
    AddLongBlocks(suite, resizer);
  }
  AddReallocarrayOverflow(suite);
  AddNothrow(suite);
}

}  // namespace tcmalloc::testing
