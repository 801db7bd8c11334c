// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <set>
#include <string>

#include "conformance/cases.h"
#include "conformance/functions.h"
#include "conformance/malloc_api.h"

namespace tcmalloc::testing {
namespace {

constexpr std::size_t kSizeMax = SIZE_MAX;
constexpr std::size_t kHalf = PTRDIFF_MAX;

struct NamedSize {
  const char* name;
  std::size_t size;
};

constexpr NamedSize kImpossibleSizes[] = {
    {"SIZE_MAX", kSizeMax},
    {"SIZE_MAX-1", kSizeMax - 1},
    {"SIZE_MAX-7", kSizeMax - 7},
    {"SIZE_MAX-15", kSizeMax - 15},
    {"SIZE_MAX-4094", kSizeMax - 4094},
    {"SIZE_MAX-4095", kSizeMax - 4095},
    {"SIZE_MAX-8191", kSizeMax - 8191},
    {"SIZE_MAX-65535", kSizeMax - 65535},
    {"SIZE_MAX-1MiB", kSizeMax - (1 << 20)},
    {"SIZE_MAX/2+4096", kHalf + 4096},
    {"PTRDIFF_MAX+1", kHalf + 1},
    {"PTRDIFF_MAX", kHalf},
    {"PTRDIFF_MAX-8191", kHalf - 8191},
    {"2^62", std::size_t{1} << 62},
    {"2^57+1", (std::size_t{1} << 57) + 1},
};

void ExpectRefusal(Case& result, const Maker& maker, const Outcome& outcome) {
  result.Equal<const void*>("block", nullptr, outcome.block);
  result.Equal("std::bad_alloc", maker.refusal == Refusal::kException, outcome.threw);
  if (maker.refusal == Refusal::kErrno || maker.refusal == Refusal::kReturned) {
    result.Equal("error number", ENOMEM, outcome.error);
  }
}

void AddImpossibleSizes(Suite& suite) {
  for (const Maker& maker : Makers()) {
    for (const NamedSize& impossible : kImpossibleSizes) {
      suite.Add("size/" + maker.name + "/" + impossible.name,
                [&maker, size = impossible.size](Case& result) {
                  ExpectRefusal(result, maker, Make(maker, size));
                });
    }
  }
}

// Every size from the top of the two ranges where rounding up overflows or goes negative, and for
// aligned functions every alignment. Exceptions are too slow for that many.
void AddTooLargeLoops(Suite& suite) {
  constexpr std::size_t kSizes = 32767;
  for (const Maker& maker : Makers()) {
    if (maker.refusal == Refusal::kException) continue;
    suite.Add("size/" + maker.name + "/every size near the top", [&maker](Case& result) {
      const int shifts = maker.aligned ? 64 : 4;
      for (std::size_t i = 0; i < kSizes && !result.failed(); ++i) {
        for (int shift = 3; shift < shifts; ++shift) {
          const std::size_t alignment = std::size_t{1} << shift;
          ExpectRefusal(result, maker, Make(maker, kSizeMax - i, alignment));
          ExpectRefusal(result, maker, Make(maker, kHalf + 1 + i, alignment));
        }
      }
    });
  }
}

struct Product {
  std::size_t count;
  std::size_t size;
};

constexpr Product kOverflows[] = {
    {kSizeMax, 2},
    {2, kSizeMax},
    {kSizeMax, kSizeMax},
    {std::size_t{1} << 32, std::size_t{1} << 32},
    {std::size_t{1} << 33, std::size_t{1} << 31},
    {(std::size_t{1} << 32) + 1, (std::size_t{1} << 32) - 1},
    {(std::size_t{1} << 32) + 1, std::size_t{1} << 32},
    {std::size_t{1} << 63, 2},
    {kSizeMax / 2 + 1, 2},
    {kSizeMax / 3 + 1, 3},
    {kSizeMax / 16 + 2, 16},
    {kSizeMax / 4096 + 2, 4096},
    {kHalf, 3},
    {3, kHalf},
};

struct Multiplier {
  std::string name;
  std::function<void*(std::size_t count, std::size_t size)> call;
};

std::vector<Multiplier> Multipliers() {
  std::vector<Multiplier> list;
  for (const char* name : {"calloc", "tc_calloc", "__libc_calloc"}) {
    if (void* (*f)(std::size_t, std::size_t) = Symbol(name)) list.push_back({name, f});
  }
  list.push_back({"reallocarray(NULL)", [](std::size_t count, std::size_t size) {
                    return Api().reallocarray(nullptr, count, size);
                  }});
  return list;
}

void AddOverflows(Suite& suite) {
  for (const Multiplier& multiplier : Multipliers()) {
    for (const Product& product : kOverflows) {
      suite.Add("overflow/" + multiplier.name + "(" + std::to_string(product.count) + "," +
                    std::to_string(product.size) + ")",
                [multiplier, product](Case& result) {
                  errno = 0;
                  result.Equal<const void*>("block", nullptr,
                                            multiplier.call(product.count, product.size));
                  result.Equal("errno", ENOMEM, errno);
                });
    }
  }
}

void AddZeroProducts(Suite& suite) {
  for (const Multiplier& multiplier : Multipliers()) {
    for (const Product& product : {Product{0, kSizeMax}, Product{kSizeMax, 0}, Product{0, 0}}) {
      suite.Add("overflow/" + multiplier.name + "(" + std::to_string(product.count) + "," +
                    std::to_string(product.size) + ") is no overflow",
                [multiplier, product](Case& result) {
                  void* const block = multiplier.call(product.count, product.size);
                  result.True("a block", block != nullptr);
                  Api().free(block);
                });
    }
  }
}

void AddZeroSizes(Suite& suite) {
  for (const Maker& maker : Makers()) {
    suite.Add("size/" + maker.name + "/0 gives distinct blocks", [&maker](Case& result) {
      std::set<void*> blocks;
      for (int i = 0; i < 100; ++i) {
        const Outcome outcome = Make(maker, 0);
        if (!result.True("a block", outcome.block != nullptr)) return;
        result.True("a new address", blocks.insert(outcome.block).second);
      }
      for (void* block : blocks) GiveBack(maker, block, 16);
    });
  }
}

// calloc must clear memory that was used before, at every size class and for large blocks.
void AddZeroing(Suite& suite) {
  for (const std::size_t size :
       std::initializer_list<std::size_t>{1, 8, 16, 24, 100, 512, 1000, 4096, 8192, 20000, 65536,
                                          262144, 262145, 1 << 20, 5 << 20}) {
    suite.Add("calloc/clears " + std::to_string(size) + " reused bytes", [size](Case& result) {
      for (int round = 0; round < 20; ++round) {
        void* const dirty = Api().malloc(size);
        std::memset(dirty, 0xa5, size);
        Api().free(dirty);
        auto* const clean = static_cast<const char*>(Api().calloc(size, 1));
        for (std::size_t i = 0; i < size; ++i) {
          if (clean[i] != 0) {
            result.Equal("byte at " + std::to_string(i), 0, static_cast<int>(clean[i]));
            break;
          }
        }
        Api().free(const_cast<char*>(clean));
      }
    });
  }
}

}  // namespace

void AddSizeCases(Suite& suite) {
  AddImpossibleSizes(suite);
  AddTooLargeLoops(suite);
  AddOverflows(suite);
  AddZeroProducts(suite);
  AddZeroSizes(suite);
  AddZeroing(suite);
}

}  // namespace tcmalloc::testing
