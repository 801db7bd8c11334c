// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "integration/limits/probes.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <new>

#include "conformance/malloc_api.h"
#include "integration/limits/address_limit.h"
#include "integration/limits/require.h"

namespace tcmalloc::testing {
namespace {

// Blocks linked through their first word, so that keeping them takes no memory of its own.
class Chain {
 public:
  // False where there was no memory; errno must say so.
  bool Grow(Size size) {
    errno = 0;
    void* const block = Api().malloc(size);
    if (block == nullptr) {
      Require(errno == ENOMEM, "errno of malloc without memory", static_cast<Size>(errno), ENOMEM);
      return false;
    }
    Adopt(block, size);
    return true;
  }

  void Adopt(void* block, Size size) {
    auto* const link = static_cast<Link*>(block);
    *link = {head_, size, CheckWord(link)};
    // The far end too: the block must be there in full.
    static_cast<char*>(block)[size - 1] = 1;
    head_ = link;
    bytes_ += size;
  }

  void FreeOne() {
    Link* const link = head_;
    Require(link->check == CheckWord(link), "contents of a block under a limit");
    head_ = link->next;
    bytes_ -= link->size;
    Api().free(link);
  }

  void FreeAll() {
    while (head_ != nullptr) FreeOne();
  }

  Size bytes() const { return bytes_; }

 private:
  struct Link {
    Link* next;
    Size size;
    std::uintptr_t check;
  };

  static std::uintptr_t CheckWord(const Link* link) {
    return ~reinterpret_cast<std::uintptr_t>(link);
  }

  Link* head_ = nullptr;
  Size bytes_ = 0;
};

// The largest block that can be had now, to a thousandth.
Size LargestBlock(Size limit) {
  Size low = 0;
  Size high = limit;
  while (high - low > limit / 1000) {
    const Size middle = low + (high - low) / 2;
    void* const block = Api().malloc(middle);
    (block != nullptr ? low : high) = middle;
    Api().free(block);
  }
  return low;
}

void RequireShare(Size figure, Size percent, Size whole, const char* what) {
  Require(figure >= whole / 100 * percent, what, figure, whole / 100 * percent);
}

void RequireSmallWorks() {
  Chain small;
  for (Size i = 0; i < 1000; ++i) {
    Require(small.Grow(32 + i % 100), "small malloc after exhaustion");
  }
  small.FreeAll();
}

// All memory in blocks of a mebibyte. They may leave less than one page of address space, so small
// blocks get what a spare block gives back.
void ExhaustLarge(Size limit) {
  Chain spare;
  Require(spare.Grow(256 * kKiB), "a spare block in a fresh process");
  Chain chain;
  while (chain.Grow(kMiB)) {
  }
  RequireShare(chain.bytes(), 50, limit, "bytes obtained in blocks of 1 MiB");
  spare.FreeAll();
  RequireSmallWorks();
  chain.FreeOne();
  RequireSmallWorks();
  chain.FreeAll();
}

// All memory in small blocks, twice: the second round gets what the first gave back.
void ExhaustSmall(Size limit) {
  Chain chain;
  while (chain.Grow(64)) {
  }
  const Size first = chain.bytes();
  RequireShare(first, 50, limit, "bytes obtained in blocks of 64 bytes");
  chain.FreeAll();
  while (chain.Grow(64)) {
  }
  RequireShare(chain.bytes(), 98, first, "bytes of 64-byte blocks obtained again");
  chain.FreeAll();
  RequireSmallWorks();
}

// All memory in blocks of one size after the other, which need fewer records and more by turns.
void ExhaustInTurn(Size limit) {
  for (const Size size :
       {kMiB, Size{64}, Size{40}, Size{3000}, Size{32}, Size{100 * kKiB}, Size{48}}) {
    Chain chain;
    while (chain.Grow(size)) {
    }
    RequireShare(chain.bytes(), 50, limit, "bytes obtained after blocks of other sizes");
    chain.FreeAll();
  }
}

// Sizes whose spans, lists and batches in caches each need records that those of others cannot use.
void ExhaustOtherSizes(Size limit) {
  for (const Size size : {Size{4096}, Size{112}, Size{32}, Size{700}, Size{256}, Size{128}}) {
    Chain chain;
    while (chain.Grow(size)) {
    }
    RequireShare(chain.bytes(), 70, limit, "bytes obtained after blocks of other sizes");
    chain.FreeAll();
  }
}

void LargestAgain(Size limit) {
  const Size before = LargestBlock(limit);
  RequireShare(before, 50, limit, "largest block of a fresh process");
  Chain chain;
  Size size = 40 * kKiB;
  while (chain.Grow(size)) size = size * 7 % (2 * kMiB) + 5 * kKiB;
  while (chain.Grow(30 * kKiB)) {
  }
  chain.FreeAll();
  RequireShare(LargestBlock(limit), 90, before, "largest block after freeing everything");
}

void Calloc(Size limit) {
  Chain chain;
  for (int round = 0; round < 3; ++round) {
    for (;;) {
      auto* const block = static_cast<unsigned char*>(Api().calloc(1, 3 * kMiB));
      if (block == nullptr) break;
      for (Size i = 0; i < 3 * kMiB; i += 509) Require(block[i] == 0, "calloc gives zeros", i);
      std::memset(block, 0xff, 4096);
      chain.Adopt(block, 3 * kMiB);
    }
    RequireShare(chain.bytes(), 50, limit, "bytes obtained from calloc");
    chain.FreeAll();
  }
}

void Realloc(Size limit) {
  constexpr char kText[] = "kept where realloc fails";
  auto* block = static_cast<char*>(Api().malloc(kMiB));
  std::memcpy(block, kText, sizeof kText);
  Size size = kMiB;
  for (;;) {
    errno = 0;
    auto* const grown = static_cast<char*>(Api().realloc(block, size + size / 2));
    if (grown == nullptr) break;
    block = grown;
    size += size / 2;
  }
  Require(errno == ENOMEM, "errno of realloc without memory");
  Require(size >= limit / 8, "size reached by realloc", size, limit / 8);
  Require(std::memcmp(block, kText, sizeof kText) == 0, "contents after a failed realloc");
  Api().free(block);
  RequireSmallWorks();
}

void* reserve = nullptr;
int handler_calls = 0;

void ReleaseReserve() {
  ++handler_calls;
  if (reserve == nullptr) {
    std::set_new_handler(nullptr);
    return;
  }
  Api().free(reserve);
  reserve = nullptr;
}

// Without memory, new calls the handler; the reserve that it frees serves the request; without a
// reserve, and without a handler, std::bad_alloc comes out, again and again.
void New(Size) {
  reserve = Api().malloc(8 * kMiB);
  std::set_new_handler(ReleaseReserve);
  Chain chain;
  while (reserve != nullptr) chain.Adopt(Api().new_plain(kMiB), kMiB);
  Require(handler_calls == 1, "calls of the new handler", static_cast<Size>(handler_calls), 1);
  int caught = 0;
  for (int i = 0; i < 20; ++i) {
    try {
      for (;;) chain.Adopt(Api().new_plain(kMiB), kMiB);
    } catch (const std::bad_alloc&) {
      ++caught;
    }
    Require(Api().new_nothrow(kMiB, std::nothrow) == nullptr, "nothrow new without memory");
  }
  Require(caught == 20, "std::bad_alloc caught", static_cast<Size>(caught), 20);
  chain.FreeAll();
  Api().delete_plain(Api().new_plain(8 * kMiB));
}

// Single pages of alternating protection until the kernel maps no more.
Size TakeAllMappings(char** pages) {
  const auto page = static_cast<Size>(sysconf(_SC_PAGESIZE));
  constexpr Size kPages = 1 << 20;
  *pages = static_cast<char*>(
      mmap(nullptr, kPages * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  Require(*pages != MAP_FAILED, "address space for the mappings");
  Size taken = 0;
  while (taken < kPages && mprotect(*pages + taken * page, page, PROT_READ) == 0) taken += 2;
  Require(taken < kPages, "mappings come to an end");
  return kPages * page;
}

// The process has as many mappings as the kernel allows, so that giving memory back may fail.
void NoMappingsLeft(Size) {
  Chain chain;
  Size size = 100;
  while (chain.bytes() < 64 * kMiB) {
    Require(chain.Grow(size), "allocation before");
    size = size * 13 % (300 * kKiB) + 100;
  }
  const Size held = chain.bytes();
  char* pages = nullptr;
  const Size reserved = TakeAllMappings(&pages);
  errno = 4242;
  chain.FreeAll();
  Require(errno == 4242, "errno after free", static_cast<Size>(errno), 4242);
  if (Api().malloc_trim != nullptr) Api().malloc_trim(0);
  RequireSmallWorks();
  size = 100;
  while (chain.bytes() < held / 100 * 90 && chain.Grow(size)) {
    size = size * 13 % (300 * kKiB) + 100;
  }
  RequireShare(chain.bytes(), 89, held, "bytes obtained again without new mappings");
  munmap(pages, reserved);
  chain.FreeAll();
  while (chain.bytes() < 2 * held) Require(chain.Grow(kMiB), "allocation afterwards");
  chain.FreeAll();
}

constexpr Probe kProbes[] = {
    {"exhaust-large", ExhaustLarge},
    {"exhaust-small", ExhaustSmall},
    {"exhaust-in-turn", ExhaustInTurn},
    {"exhaust-other-sizes", ExhaustOtherSizes},
    {"largest-again", LargestAgain},
    {"calloc", Calloc},
    {"realloc", Realloc},
    {"new", New},
    {"threads", [](Size) { ProbeThreads(256 * kKiB); }},
    {"threads-with-large-stacks", [](Size) { ProbeThreads(8 * kMiB); }},
    {"no-mappings-left", NoMappingsLeft},
};

}  // namespace

std::span<const Probe> Probes() { return kProbes; }

}  // namespace tcmalloc::testing
