// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "conformance/witness.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <regex>

#include "conformance/child.h"
#include "conformance/malloc_api.h"

extern "C" char __data_start;
extern "C" char _end;

namespace tcmalloc::testing {
namespace {

constexpr int kOverlapStatus = 3;
constexpr int kForeignStatus = 4;
constexpr std::size_t kStackReach = std::size_t{1} << 20;

struct Wording {
  Fault fault;
  const char* pattern;  // of what follows "tcmalloc: "
};

// The one table of messages. An interior pointer may be told apart from a foreign one, or not.
constexpr Wording kWordings[] = {
    {Fault::kInvalid, "invalid free of 0x[0-9a-f]+.*"},
    {Fault::kMisaligned, "misaligned free of 0x[0-9a-f]+.*"},
    {Fault::kInterior, "(invalid|misaligned|interior) free of 0x[0-9a-f]+.*"},
    {Fault::kDouble,
     "(double free of 0x[0-9a-f]+( \\([1-9][0-9]* bytes\\))?.*|"
     "invalid free of 0x[0-9a-f]+: .*freed already.*|"
     "invalid free of 0x[0-9a-f]+: it points into the block at.*|"
     "corrupted free list.* 0x[0-9a-f]+ \\([0-9]+ bytes\\).*freed twice.*)"},
    {Fault::kAny,
     "(.*(free|delete) of 0x[0-9a-f]+.*|corrupted free list.* 0x[0-9a-f]+ .*|.*check failed.*)"},
};

const char* PatternOf(Fault fault) {
  const auto* const found = std::find_if(std::begin(kWordings), std::end(kWordings),
                                         [&](const Wording& w) { return w.fault == fault; });
  return found->pattern;
}

// Shared with the children.
const void*& Announced() {
  static const void** const shared = [] {
    void* memory = mmap(nullptr, sizeof(const void*), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    return static_cast<const void**>(memory);
  }();
  return *shared;
}

std::string Hexadecimal(const void* address) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%jx",
                static_cast<std::uintmax_t>(reinterpret_cast<std::uintptr_t>(address)));
  return text;
}

void CheckMessage(Case& result, Fault fault, const ChildResult& child) {
  // Lines that begin with spaces tell more.
  const std::string expected = std::string("tcmalloc: ") + PatternOf(fault) + "\n(    .*\n)+";
  result.Check(std::regex_match(child.errors, std::regex(expected)), "message",
               "one message: " + expected, child);
  // A corrupted list may come to light at another object of it.
  const bool names_block = child.errors.find("corrupted free list") == std::string::npos;
  if (Announced() == nullptr || !names_block) return;
  const std::string address = Hexadecimal(Announced());
  result.Check(child.errors.find(address) != std::string::npos, "address in the message", address,
               child);
}

ChildResult RunWithAnnouncement(const std::function<void()>& body) {
  Announced() = nullptr;
  return RunInChild(body);
}

}  // namespace

void Announce(const void* address) { Announced() = address; }

void ExpectAbort(Case& result, Fault fault, const std::function<void()>& body) {
  const ChildResult child = RunWithAnnouncement(body);
  if (!result.Check(child.Killed(SIGABRT), "end", "SIGABRT", child)) return;
  CheckMessage(result, fault, child);
}

void ExpectAbortOrSurvival(Case& result, const std::function<void()>& body) {
  const ChildResult child = RunWithAnnouncement(body);
  if (child.Exited(0)) return;
  if (!result.Check(child.Killed(SIGABRT), "end", "exit 0 or SIGABRT", child)) return;
  CheckMessage(result, Fault::kAny, child);
}

LiveBlocks::LiveBlocks(std::size_t capacity) : capacity_(capacity) {
  void* memory = mmap(nullptr, capacity * sizeof(Range), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  ranges_ = static_cast<Range*>(memory);
}

LiveBlocks::~LiveBlocks() { munmap(ranges_, capacity_ * sizeof(Range)); }

void LiveBlocks::Add(const void* block, std::size_t size) {
  if (block == nullptr) return;
  if (count_ == capacity_) _exit(2);
  const char* const begin = static_cast<const char*>(block);
  const char* const stack = static_cast<const char*>(__builtin_frame_address(0));
  const bool on_stack = begin + kStackReach > stack && begin < stack + kStackReach;
  const bool in_data = begin + size > &__data_start && begin < &_end;
  if (on_stack || in_data) {
    std::fprintf(stderr, "malloc returned %p, which is not in the heap\n", block);
    _exit(kForeignStatus);
  }
  ranges_[count_++] = {begin, begin + size};
}

void LiveBlocks::CheckOrExit() {
  std::sort(ranges_, ranges_ + count_,
            [](const Range& a, const Range& b) { return a.begin < b.begin; });
  for (std::size_t i = 1; i < count_; ++i) {
    if (ranges_[i].begin >= ranges_[i - 1].end) continue;
    std::fprintf(stderr, "malloc returned overlapping blocks: %p and %p\n",
                 static_cast<const void*>(ranges_[i - 1].begin),
                 static_cast<const void*>(ranges_[i].begin));
    _exit(kOverlapStatus);
  }
}

void AllocateAndCheck(LiveBlocks& live, std::size_t count, std::size_t size) {
  for (std::size_t i = 0; i < count; ++i) {
    void* const block = Api().malloc(size);
    live.Add(block, size);
    if (block != nullptr) std::memset(block, 0x5a, size);
  }
  live.CheckOrExit();
}

}  // namespace tcmalloc::testing
