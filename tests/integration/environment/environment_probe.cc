// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Shows from outside which options an allocator follows: prints one "name=value" line for each
// observation named on the command line.

#include <malloc.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>

#include "conformance/resident.h"

namespace {

using tcmalloc::testing::ResidentBytes;

constexpr std::size_t kMiB = std::size_t{1} << 20;

void Print(const char* name, std::size_t value) { std::printf("%s=%zu\n", name, value); }

// AT_SECURE: the kernel raised this process's privileges.
void Secure() { Print("secure", getauxval(AT_SECURE) != 0 ? 1 : 0); }

// Prints how much of 200 MiB can be had, in blocks of 1 MiB.
void Obtainable() {
  constexpr std::size_t kBlocks = 200;
  void* blocks[kBlocks] = {};
  std::size_t obtained = 0;
  while (obtained < kBlocks && (blocks[obtained] = std::malloc(kMiB)) != nullptr) ++obtained;
  if (obtained < kBlocks) Print("errno", static_cast<std::size_t>(errno));
  for (std::size_t i = 0; i < obtained; ++i) std::free(blocks[i]);
  Print("obtainable_mib", obtained);
}

// A block that is not touched.
void Take(std::size_t bytes) {
  void* const block = std::malloc(bytes);
  Print("block_bytes", malloc_usable_size(block));
  std::free(block);
}

void Large() { Take(4 * kMiB + 1); }
void Huge() { Take(1024 * kMiB); }

// Resident mebibytes of 32 MiB that were used and freed, before and after malloc_trim.
void Resident() {
  constexpr std::size_t kBlocks = 32;
  const std::size_t before = ResidentBytes();
  void* blocks[kBlocks];
  for (void*& block : blocks) {
    block = std::malloc(kMiB);
    std::memset(block, 1, kMiB);
  }
  for (void* block : blocks) std::free(block);
  const auto grown = [before] {
    const std::size_t now = ResidentBytes();
    return now > before ? (now - before) / kMiB : 0;
  };
  Print("resident_after_free_mib", grown());
  malloc_trim(0);
  Print("resident_after_trim_mib", grown());
}

// Prints 1 if blocks lie in the segment that sbrk moves.
void Segment() {
  void* const block = std::malloc(4 * kMiB);
  const auto address = reinterpret_cast<std::uintptr_t>(block);
  const auto end = reinterpret_cast<std::uintptr_t>(sbrk(0));
  const auto data = reinterpret_cast<std::uintptr_t>(&kMiB);
  Print("sbrk", address < end && address > data ? 1 : 0);
  std::free(block);
}

// Prints 1 if blocks lie in a file below /dev/shm.
void Backing() {
  void* const block = std::malloc(4 * kMiB);
  const auto address = reinterpret_cast<std::uintptr_t>(block);
  std::ifstream maps("/proc/self/maps");
  std::size_t in_file = 0;
  for (std::string line; std::getline(maps, line);) {
    unsigned long start = 0;
    unsigned long end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx", &start, &end) != 2) continue;
    if (start > address || address >= end) continue;
    in_file = line.find(" /dev/shm/") != std::string::npos ? 1 : 0;
  }
  std::free(block);
  Print("in_file", in_file);
}

void Churn() {
  constexpr std::size_t kBlocks = 500;
  static thread_local void* blocks[kBlocks];
  for (int round = 0; round < 10; ++round) {
    for (std::size_t i = 0; i < kBlocks; ++i) {
      std::free(blocks[i]);
      const std::size_t size = 1 + i * i % 5000;
      blocks[i] = std::malloc(size);
      std::memset(blocks[i], 1, size);
    }
  }
  for (void*& block : blocks) {
    std::free(block);
    block = nullptr;
  }
}

// Ordinary use, in two threads and in a forked child.
void Use() {
  std::thread other(Churn);
  Churn();
  other.join();
  const pid_t pid = fork();
  if (pid == 0) {
    Churn();
    _exit(0);
  }
  int status = -1;
  waitpid(pid, &status, 0);
  Print("used", status == 0 ? 1 : 0);
}

void Information() { malloc_info(0, stdout); }

struct Observation {
  std::string_view name;
  void (*print)();
};

constexpr Observation kObservations[] = {
    {"secure", Secure},     {"obtainable", Obtainable},
    {"resident", Resident}, {"segment", Segment},
    {"large", Large},       {"huge", Huge},
    {"use", Use},           {"information", Information},
    {"backing", Backing},
};

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    for (const Observation& observation : kObservations) {
      if (observation.name == argv[i]) observation.print();
    }
  }
  return 0;
}
