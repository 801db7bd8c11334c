// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>

#include "conformance/cases.h"
#include "conformance/functions.h"
#include "conformance/malloc_api.h"

namespace tcmalloc::testing {
namespace {

using Size = std::size_t;

// Small, medium, large, and large enough that giving it back may be a system call.
constexpr Size kDeallocatedSizes[] = {0,      1,      8,      100,     1024,    8192,
                                      100000, 262144, 300000, 1 << 20, 64 << 20};

void AddErrno(Suite& suite) {
  for (const Breaker& breaker : Breakers()) {
    suite.Add("free/" + breaker.name + "/keeps errno", [&breaker](Case& result) {
      for (const Size size : kDeallocatedSizes) {
        for (const int error : {0, ENOMEM, 4242}) {
          void* const block = MakeFor(breaker, size, 64);
          if (size > 0) static_cast<char*>(block)[size - 1] = 1;
          errno = error;
          breaker.call(block, size, 64);
          result.Equal("errno after " + std::to_string(size) + " bytes", error, errno);
        }
      }
    });
  }
}

void AddNull(Suite& suite) {
  for (const Breaker& breaker : Breakers()) {
    suite.Add("free/" + breaker.name + "/NULL is nothing", [&breaker](Case& result) {
      errno = 4242;
      for (const Size size : std::initializer_list<Size>{0, 1, 1000, 1 << 20})
        breaker.call(nullptr, size, 64);
      result.Equal("errno", 4242, errno);
    });
  }
}

// Every size, given back right: the block must be found again under the size it was made with.
void AddSizes(Suite& suite) {
  for (const Breaker& breaker : Breakers()) {
    suite.Add("free/" + breaker.name + "/every size", [&breaker](Case& result) {
      constexpr Size kLargest = 20000;
      constexpr Size kHeld = 16;
      void* blocks[kHeld] = {};
      for (Size size = 0; size <= kLargest; ++size) {
        void*& slot = blocks[size % kHeld];
        if (size >= kHeld) {
          const auto mark = static_cast<unsigned char>(size - kHeld);
          const auto* const bytes = static_cast<const unsigned char*>(slot);
          const Size held = size - kHeld;
          if (held > 0 && (bytes[0] != mark || bytes[held - 1] != mark)) {
            result.True("contents of " + std::to_string(held) + " bytes", false);
          }
          breaker.call(slot, held, 32);
        }
        slot = MakeFor(breaker, size, 32);
        std::memset(slot, static_cast<unsigned char>(size), size);
      }
      for (Size size = kLargest - kHeld + 1; size <= kLargest; ++size) {
        breaker.call(blocks[size % kHeld], size, 32);
      }
    });
  }
}

void AddNallocx(Suite& suite) {
  for (const char* name : {"nallocx", "tc_nallocx"}) {
    Size (*f)(Size, int) = Symbol(name);
    if (f == nullptr) continue;
    suite.Add(std::string("nallocx/") + name + "/is what malloc gives", [f](Case& result) {
      for (Size size = 1; size <= 600000; size += size < 5000 ? 1 : 977) {
        void* const block = Api().malloc(size);
        if (!result.Equal("nallocx of " + std::to_string(size), Api().malloc_usable_size(block),
                          f(size, 0))) {
          return;
        }
        Api().free(block);
      }
    });
    suite.Add(std::string("nallocx/") + name + "/with an alignment", [f](Case& result) {
      for (int shift = 3; shift <= 20; ++shift) {
        for (Size size = 1; size <= 100000; size += size / 7 + 1) {
          const Size promised = f(size, shift);
          void* const block = Api().memalign(Size{1} << shift, size);
          const Size usable = Api().malloc_usable_size(block);
          Api().free(block);
          if (!result.Check(promised >= size && promised <= usable,
                            "nallocx of " + std::to_string(size) + " at 2^" + std::to_string(shift),
                            "between size and " + std::to_string(usable), promised)) {
            return;
          }
        }
      }
    });
    suite.Add(std::string("nallocx/") + name + "/absurd sizes", [f](Case& result) {
      for (const Size size : {Size{SIZE_MAX}, Size{SIZE_MAX} - 4095, Size{PTRDIFF_MAX} + 1}) {
        const Size promised = f(size, 0);
        result.Check(promised == 0 || promised >= size, "nallocx of " + std::to_string(size),
                     "0 or no less", promised);
      }
    });
  }
  if (Api().nallocx == nullptr || Api().sdallocx == nullptr) return;
  suite.Add("nallocx/sdallocx takes the size it returned", [](Case& result) {
    for (Size size = 1; size <= 600000; size += size < 5000 ? 1 : 977) {
      void* const block = Api().malloc(size);
      result.True("a block", block != nullptr);
      Api().sdallocx(block, Api().nallocx(size, 0), 0);
    }
  });
}

// Blocks of each entry point of one family may be given to any other of it.
void AddMixedNames(Suite& suite) {
  for (const Maker& maker : Makers()) {
    if (maker.has_new_handler) continue;
    suite.Add("free/blocks of " + maker.name + " by every name of free", [&maker](Case& result) {
      for (const char* name : {"free", "cfree", "tc_free", "tc_cfree", "__libc_free"}) {
        void (*f)(void*) = Symbol(name);
        if (f == nullptr) continue;
        for (const Size size : kDeallocatedSizes) {
          const Outcome outcome = Make(maker, size, 64);
          if (!result.True("a block", outcome.block != nullptr)) return;
          f(outcome.block);
        }
      }
    });
  }
}

}  // namespace

void AddDeallocationCases(Suite& suite) {
  AddErrno(suite);
  AddNull(suite);
  AddSizes(suite);
  AddNallocx(suite);
  AddMixedNames(suite);
}

}  // namespace tcmalloc::testing
